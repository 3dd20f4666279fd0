"""Published model profiles: how fast layouts train, what their state weighs, what starting costs.

A profile is a YAML file (``simulator/profiles``): speeds by layout, parameters by layer, and the
times of starting, regrouping and sending, as measured on real machines by its source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from parcae_api.errors import InputError
from parcae_api.job import explain
from parcae_optimizer.rules import Grid

SUFFIX = ".yaml"
_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "bundled", _PACKAGE.parent / "profiles")
"""Where a wheel puts the files, and where they lie in the repository."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GRID = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")


def _grid(key: object) -> object:
    if not isinstance(key, str) or (match := _GRID.fullmatch(key)) is None:
        raise ValueError(f"{key!r} is no layout; write replicas x stages like 2x12")
    return Grid(int(match[1]), int(match[2]))


def _name(name: object) -> object:
    """As a trace's: names of files and words of tables are made of it."""
    if isinstance(name, str) and not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.80} is no name; use letters, digits, . _ and -")
    return name


def _expanded(runs: object) -> object:
    """Spell out ``[[layers, parameters], …]``."""
    if not isinstance(runs, list):
        return runs
    if not all(isinstance(run, list) and len(run) == 2 for run in runs):
        raise ValueError("each entry must be [layers, parameters of each], like [24, 12596224]")
    if not all(isinstance(run[0], int) and 0 < run[0] <= 10_000 for run in runs):
        raise ValueError("the number of layers in each entry must be from 1 to 10000")
    return tuple(size for count, size in runs for _ in range(count))


Finite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0)]
GridKey = Annotated[Any, BeforeValidator(_grid)]
Steps = Annotated[dict[Count, Positive], Field(min_length=1)]
Name = Annotated[str, BeforeValidator(_name)]
Layers = Annotated[tuple[Count, ...], BeforeValidator(_expanded), Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Stages(_Part):
    """Depths that the model runs at."""

    min: Count
    max: Count
    excluded: tuple[int, ...] = ()


class Unit(StrEnum):
    """What the time of forming process groups grows with."""

    GROUPS = "groups"
    """D + P + 1 + D·P process groups."""
    CELLS = "cells"
    """D·P workers."""
    REPLICAS = "replicas"
    """A step function of D."""


class Kind(StrEnum):
    """Whether a change adds workers to the grid."""

    ADD = "add"
    REMOVE = "remove"


class Regroup(_Part):
    """Time of forming process groups, beyond a constant."""

    per: Unit
    add: Positive | Steps
    """Milliseconds per unit; of ``replicas``: from so many on, so many in all."""
    remove: Positive | Steps

    def ms(self, grid: Grid, kind: Kind) -> float:
        """Milliseconds for the process groups of a layout."""
        value = self.add if kind is Kind.ADD else self.remove
        if isinstance(value, Mapping):
            steps = [at for at in value if at <= max(grid.data, min(value))]
            return value[max(steps)]
        d, p = grid
        units = {Unit.GROUPS: d + p + 1 + d * p, Unit.CELLS: d * p, Unit.REPLICAS: d}
        return value * units[self.per]


class ModelProfile(_Part):
    """One model on one kind of machine, one GPU an instance."""

    model: Name
    source: str
    global_batch_samples: Count
    micro_batch_samples: Count
    sequence_tokens: Count | None = None
    """Tokens of one sample, where the source tells."""
    optimizer: str
    state_bytes_per_parameter: Count
    layer_parameters: Layers
    """Parameters of each layer; in the file as runs of equal layers."""
    stages: Stages
    excluded_replicas: tuple[int, ...] = ()
    samples_per_second: dict[GridKey, Finite] = Field(min_length=1)
    build_ms: dict[Count, Finite] = Field(min_length=1)
    """Building the model on its workers, by depth."""
    rendezvous_ms: Finite
    process_ms: Finite
    restart_extra_ms: Finite
    regroup_ms: Regroup
    transfer_us: dict[Count, Positive] = Field(min_length=1)
    """From one worker to another, by bytes."""

    def allows(self, grid: Grid) -> bool:
        """Whether the model runs on this layout, memory and exclusions considered."""
        stages = self.stages
        return (
            stages.min <= grid.pipeline <= stages.max
            and grid.pipeline not in stages.excluded
            and grid.data > 0
            and grid.data not in self.excluded_replicas
        )

    def speed(self, grid: Grid) -> float:
        """Samples per second as measured; 0 where nothing was."""
        return float(self.samples_per_second.get(grid, 0.0))

    def best(self, instances: int) -> Grid | None:
        """The measured layout of highest speed on at most so many instances.

        Ties go to the smaller D, then the smaller P. None below the smallest measured layout.
        """
        fitting = [grid for grid in self.measured if grid.workers <= instances]
        return max(fitting, key=self.speed, default=None)

    @cached_property
    def measured(self) -> tuple[Grid, ...]:
        """All measured layouts, by D, then P."""
        return tuple(sorted(self.samples_per_second))


def bundled_profiles() -> dict[str, Path]:
    """The bundled files by model, in order of name."""
    for place in _PLACES:
        if found := {path.name.removesuffix(SUFFIX): path for path in place.glob(f"*{SUFFIX}")}:
            return dict(sorted(found.items()))
    return {}


def find_profile(where: str | Path) -> ModelProfile:
    """Read a profile, given as the name of a bundled model or as a file.

    Raises:
        InputError: there is no such model or file, or the file is wrong.
    """
    path = Path(where)
    bundled = bundled_profiles()
    if (named := bundled.get(str(where))) is not None and not path.is_file():
        return load_profile(named)
    if path.name and not os.path.lexists(path):
        raise InputError(
            f"model {str(where)!r} is neither a profile file nor bundled; bundled are: "
            f"{', '.join(bundled)}"
        )
    return load_profile(path)


def load_profile(path: Path) -> ModelProfile:
    """Read a profile file.

    Raises:
        InputError: the file is missing, is no YAML, or a field is unknown, missing or wrong.
    """
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path}: must hold a model profile, not {type(document).__name__}")
    try:
        profile = ModelProfile.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from error
    _check_stages(profile, path)
    return profile


def _check_stages(profile: ModelProfile, path: Path) -> None:
    if profile.stages.min > profile.stages.max:
        raise InputError(
            f"{path}: stages.min: {profile.stages.min} is above stages.max "
            f"({profile.stages.max}); swap them"
        )
    layers = len(profile.layer_parameters)
    if profile.stages.min > layers:
        raise InputError(
            f"{path}: stages.min: {profile.stages.min} stages need as many layers, but "
            f"layer_parameters has {layers}; lower it"
        )
    for grid in profile.measured:
        if grid.pipeline > layers:
            raise InputError(
                f"{path}: samples_per_second: {grid} has more stages than layer_parameters has "
                f"layers ({layers}); remove it"
            )
        if profile.allows(grid) and grid.pipeline not in profile.build_ms:
            raise InputError(
                f"{path}: build_ms: has no time for depth {grid.pipeline}, which "
                f"samples_per_second measures; add it"
            )
