"""ParcaeJob: what a user applies. The status written back is in ``job_status``.

Infrastructure lives here; hyper-parameters live in the user's code, behind the entrypoint.
"""

from __future__ import annotations

import re
import reprlib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator

from parcae_api.errors import InputError
from parcae_api.job_status import JobStatus
from parcae_api.model import Manifest

API_VERSION = "parcae.dev/v1alpha1"
KIND = "ParcaeJob"
MAX_INSTANCES = 512

_ENTRYPOINT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_NAME = r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"
"""Shorter than Kubernetes allows: pods and labels are named after the job."""
_NAMESPACE = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


class Reduction(StrEnum):
    """How gradients are summed over the global batch."""

    EXACT = "exact"
    """One fixed binary tree over the micro-batches: the bits do not depend on the layout."""
    FAST = "fast"
    """A weighted all-reduce: the usual bits, which change with the layout."""


class Instances(Manifest):
    """How many instances the job takes."""

    min: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 1
    """Below this many, training pauses and state is kept."""
    max: Annotated[int, Field(ge=1, le=MAX_INSTANCES)]
    """Pods for this many stay requested, so that capacity is looked for."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) must not be above max ({self.max})")
        return self


class Entrypoint(Manifest):
    """The user's function that returns a ``parcae_agent.Training``."""

    function: Annotated[str, Field(max_length=253)]
    """``module:function``; the module is imported from the manifest's folder or the image."""
    args: Annotated[dict[str, JsonValue], Field(max_length=64)] = {}
    """Keyword arguments for it."""
    config_map: Annotated[str, Field(max_length=253)] | None = None
    """A ConfigMap of the job's namespace that holds the module, for small scripts. Without one the
    module is imported from the image. Local runs read the manifest's folder."""

    @field_validator("function")
    @classmethod
    def _has_form(cls, value: str) -> str:
        if not _ENTRYPOINT.fullmatch(value):
            raise ValueError(f"{value!r} must have the form module:function, like train:gpt")
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
    """Bounds on the pipeline depth P."""

    min_stages: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = 1
    max_stages: Annotated[int, Field(ge=1, le=MAX_INSTANCES)] = MAX_INSTANCES

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_stages > self.max_stages:
            raise ValueError(
                f"minStages ({self.min_stages}) must not be above maxStages ({self.max_stages})"
            )
        return self


class Checkpoint(Manifest):
    """Durable copies, read only when no living worker holds a layer any more."""

    every_steps: Annotated[int, Field(ge=1)] = 50
    path: Annotated[str, Field(max_length=4096)] | None = None
    """A folder that every worker reaches, on a volume of the template. Without one, state lives in
    the workers alone. Local runs use the run's own folder."""


class Planning(Manifest):
    """How the future is looked at."""

    interval_seconds: Annotated[int, Field(ge=1, le=86_400)] = 60
    """The clock of history and forecast. Events are answered at once, whatever it is."""
    horizon: Annotated[int, Field(ge=1, le=60)] = 12
    """Intervals to look ahead."""


class JobSpec(Manifest):
    """What the user wants."""

    instances: Instances
    entrypoint: Entrypoint
    reduction: Reduction = Reduction.EXACT
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Draws initial weights, data order and dropout."""
    pipeline: Pipeline = Pipeline()
    checkpoint: Checkpoint = Checkpoint()
    threads_per_worker: Annotated[int, Field(ge=1, le=256)] = 1
    """CPU threads of one worker. Part of the bits: another number gives other roundings."""
    planning: Planning = Planning()
    suspend: bool = False
    """Pause: state is saved, and where there is a checkpoint path the pods are given back."""
    backoff_limit: Annotated[int, Field(ge=0, le=100)] = 0
    """Crashes of the user's code that are tried again. Losses of instances never count. Training is
    deterministic, so most crashes come again at the same step."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """The finished job is deleted after this time. Without it, it stays."""
    template: dict[str, JsonValue] = {}
    """Pod template of the agents, as in a Deployment; its first container trains. Unused by local
    runs."""

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

    name: Annotated[str, Field(pattern=_NAME)]
    namespace: Annotated[str, Field(pattern=_NAMESPACE)] = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    uid: str = ""
    """Given by the API server: tells a job from an earlier one of the same name."""
    generation: int = 0
    """Counts the edits of the spec."""


class ParcaeJob(Manifest):
    """The whole object, as ``kubectl apply`` takes it."""

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
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        detail = " ".join(str(error).split())
        raise InputError(f"{path}: is not YAML: {detail}") from error
    if not isinstance(document, dict):
        raise InputError(f"{path}: must hold one {KIND} object, not {type(document).__name__}")
    try:
        return ParcaeJob.model_validate(document)
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from error


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80


def explain(error: ValidationError) -> str:
    """One sentence for the first problem of a validation error: field, value, remedy."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the object"
    match first["type"]:
        case "missing":
            return f"{field}: is required; add it"
        case "extra_forbidden":
            return f"{field}: is not a known field; remove it or correct its spelling"
        case "value_error":
            return f"{field}: {first['msg'].removeprefix('Value error, ')}"
        case _:
            return f"{field}: {first['msg']}, but it is {_short.repr(first['input'])}"
