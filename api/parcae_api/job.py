"""ParcaeJob: what a user applies. The status written back is in ``job_status``.

Infrastructure lives here; hyper-parameters live in the user's code, behind the entrypoint.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator

from parcae_api.errors import InputError
from parcae_api.free_json import TRAVELS
from parcae_api.job_status import JobStatus
from parcae_api.model import Manifest

API_VERSION = "parcae.dev/v1alpha1"
KIND = "ParcaeJob"
MAX_INSTANCES = 512
HORIZON = 12
"""Intervals to look ahead, where nothing else is asked for: looking further makes plans grow too
eagerly."""
LONGEST_HORIZON = 60

MAX_NAME = 40
"""Shorter than Kubernetes allows: pods and labels are named after the job."""

# Checked by the API server too, before anything is stored: ``crd_rules`` holds the same in CEL.
ENTRYPOINT = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"
NAME = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
CONFIG_MAP = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_NAMESPACE = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


class Reduction(StrEnum):
    """How gradients are summed over the global batch."""

    EXACT = "exact"
    """One fixed binary tree over the micro-batches: the bits do not depend on the layout."""
    FAST = "fast"
    """A weighted all-reduce: the usual bits, which change with the layout."""


class Instances(Manifest):
    """How many instances the job takes; it trains with whatever is there between the two."""

    min: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 1
    """With fewer, training pauses and its state is kept."""
    max: Annotated[int, Field(ge=1, le=MAX_INSTANCES)]
    """Pods for this many stay requested, so that the cluster looks for capacity."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(
                f"min ({self.min}) must not be above max ({self.max}); lower min or raise max"
            )
        return self


class Entrypoint(Manifest):
    """The user's function that returns a ``parcae_agent.Training``. It cannot be changed."""

    function: Annotated[str, Field(max_length=253)]
    """``module:function``, like ``train:gpt``."""
    args: Annotated[dict[str, JsonValue], Field(max_length=64), TRAVELS] = {}
    """Keyword arguments for the function: any JSON values."""
    config_map: Annotated[str, Field(max_length=253)] | None = None
    """A ConfigMap of the job's namespace that holds the module, for small scripts. Without one the
    module is imported from the image. Local runs import it from the manifest's folder."""

    @field_validator("function")
    @classmethod
    def _has_form(cls, value: str) -> str:
        if not re.fullmatch(ENTRYPOINT, value):
            raise ValueError(f"'{value}' must have the form module:function, like train:gpt")
        return value

    @field_validator("config_map")
    @classmethod
    def _is_a_name(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(CONFIG_MAP, value):
            raise ValueError(
                f"'{value}' cannot be the name of a ConfigMap; use lower-case letters, digits, "
                "'-' and '.', with a letter or digit at both ends"
            )
        return value

    @property
    def module(self) -> str:
        """The part before the colon."""
        return self.function.partition(":")[0]

    @property
    def attribute(self) -> str:
        """The part after the colon."""
        return self.function.partition(":")[2]


class Pipeline(Manifest):
    """Bounds on the pipeline depth P: how many stages the model is cut into."""

    min_stages: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 1
    """At least this many, for a model that does not fit into fewer devices."""
    max_stages: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = MAX_INSTANCES
    """At most this many. There are never more stages than layers."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_stages > self.max_stages:
            raise ValueError(
                f"minStages ({self.min_stages}) must not be above maxStages "
                f"({self.max_stages}); lower minStages or raise maxStages"
            )
        return self


class Checkpoint(Manifest):
    """Durable copies, read only when no living worker holds a layer any more."""

    every_steps: Annotated[int, Field(ge=1, le=10**15)] = 50
    """Steps from one copy to the next."""
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """A folder that every worker reaches, on a volume of the template; it cannot be changed.
    Without one, state lives in the workers alone. Local runs use the run's own folder."""


class Planning(Manifest):
    """How the future is looked at: the plan that is best in expectation is made from it."""

    interval_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """The clock of history and forecast. Events are answered at once, whatever it is."""
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)] = HORIZON
    """How many intervals to look ahead."""


class JobSpec(Manifest):
    """What is to be trained, and within which bounds."""

    instances: Instances
    entrypoint: Entrypoint
    reduction: Reduction = Reduction.EXACT
    """How gradients are summed over the global batch; it cannot be changed. ``exact``: in one fixed
    order, so that losses and weights are bit for bit the same, whatever is preempted. ``fast``: by
    a weighted all-reduce, whose bits change with the layout."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Draws initial weights, data order and dropout. It cannot be changed."""
    pipeline: Pipeline = Pipeline()
    checkpoint: Checkpoint = Checkpoint()
    threads_per_worker: Annotated[int, Field(ge=1, le=256)] = 1
    """CPU threads of one worker. It cannot be changed: another number gives other roundings."""
    planning: Planning = Planning()
    suspend: bool = False
    """Pause: state is saved, and where there is a checkpoint path the pods are given back."""
    backoff_limit: Annotated[int, Field(ge=0, le=100)] = 0
    """Crashes of the user's code that are tried again. Losses of instances never count. Training is
    deterministic, so most crashes come again at the same step."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """The finished job is deleted after this many seconds. Without it, it stays."""
    template: Annotated[dict[str, JsonValue], TRAVELS] = {}
    """Pod template of the agents, as in a Deployment; its first container trains. Needed on
    Kubernetes, unused by local runs."""

    @model_validator(mode="after")
    def _depth_is_reachable(self) -> Self:
        if self.pipeline.min_stages > self.instances.max:
            raise ValueError(
                f"pipeline.minStages ({self.pipeline.min_stages}) needs as many instances, but "
                f"instances.max is {self.instances.max}; raise max or lower minStages"
            )
        return self


class Metadata(Manifest):
    """The part of Kubernetes' object metadata that local runs read too."""

    name: str
    """At most 40 lower-case letters, digits and ``-``: pods and labels are named after the job."""
    namespace: Annotated[str, Field(pattern=_NAMESPACE)] = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    """Given by the API server: tells a job from an earlier one of the same name."""
    generation: int = 0
    """Counts the edits of the spec."""

    @field_validator("name")
    @classmethod
    def _fits_pods(cls, value: str) -> str:
        if len(value) > MAX_NAME:
            raise ValueError(
                f"has {len(value)} characters, but pods are named after the job; "
                f"use at most {MAX_NAME}"
            )
        if not re.fullmatch(NAME, value):
            raise ValueError(
                f"'{value}' cannot name pods; use lower-case letters, digits and '-', "
                "with a letter or digit at both ends"
            )
        return value


class ParcaeJob(Manifest):
    """One model, trained on instances that may be preempted at any time."""

    api_version: Literal["parcae.dev/v1alpha1"]
    kind: Literal["ParcaeJob"]
    metadata: Metadata
    spec: JobSpec
    status: JobStatus = JobStatus()


def load_job(path: Path) -> ParcaeJob:
    """Read a manifest.

    Raises:
        InputError: the file is missing, is no YAML, or a field is unknown, missing or wrong.
            The message names the first such field with its path, value and remedy.
    """
    try:
        document: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # PyYAML lets many of Python's own through: 2026-13-01, !!int ""
        detail = _cut(" ".join(str(error).split()) or type(error).__name__, 300)
        raise InputError(f"{path}: is not YAML: {detail}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path}: must hold one {KIND} object, not {type(document).__name__}")
    try:
        return ParcaeJob.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from error


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxlevel = 2


def explain(error: ValidationError) -> str:
    """One sentence of bounded length for the first problem: field, value, remedy."""
    first = error.errors(include_url=False)[0]
    field = _cut(".".join(printable(part) for part in first["loc"]), 200) or "the object"
    return f"{field}: {what_is_wrong(first)}"


def what_is_wrong(problem: Mapping[str, Any]) -> str:
    """The rest of that sentence, after the field: what is wrong, the value, the remedy.

    Args:
        problem: One of those that a ``ValidationError`` lists.
    """
    match problem["type"]:
        case "missing":
            return "is required; add it"
        case "extra_forbidden":
            return "is not a known field; remove it or correct its spelling"
        case "value_error":
            return _cut(problem["msg"].removeprefix("Value error, "), 500)
        case _:
            return f"{_cut(problem['msg'], 500)}, but it is {_quoted(problem['input'])}"


def printable(part: object) -> str:
    """One step of a field's path, in one short line."""
    return _cut(str(part), 64)


def _quoted(value: object) -> str:
    try:
        return _cut(_short.repr(value), 160)
    except ValueError:  # Python writes no integer of thousands of digits
        return f"one long {type(value).__name__}"


def _cut(text: str, length: int) -> str:
    """One printable line of at most that length: what users wrote may be anything."""
    line = "".join(c if c.isprintable() else "\ufffd" for c in text[: length + 1])
    return line if len(line) <= length else line[: length - 1] + "…"
