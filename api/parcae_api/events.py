"""Events: what happened, for people, records and metrics. Bounded on the board, whole in files."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from parcae_api.model import Contract
from parcae_api.plan import PlanReason
from parcae_api.planning import ForecastSummary


class MigrationKind(StrEnum):
    """What a plan change moved."""

    INTRA_STAGE = "intra_stage"
    """Regroup only; no state moves."""
    INTER_STAGE = "inter_stage"
    """A stage's state is copied to a worker that lacks it; the depth stays."""
    PIPELINE = "pipeline"
    """Layers are re-partitioned into another depth or other boundaries."""


class Event(Contract):
    """Common to all."""

    at_unix_s: float


class NoticeGiven(Event):
    """An instance will go away."""

    type: Literal["notice"] = "notice"
    incarnation: str
    node: str
    deadline_unix_s: float
    source: str


class InstanceLost(Event):
    """An instance is gone. ``noticed``: a notice came before and its state was out in time."""

    type: Literal["preemption"] = "preemption"
    incarnation: str
    node: str
    noticed: bool


class InstanceJoined(Event):
    """An agent's workers are ready to train."""

    type: Literal["join"] = "join"
    incarnation: str
    node: str


class Planned(Event):
    """A new plan was published."""

    type: Literal["plan"] = "plan"
    revision: int
    reason: PlanReason
    why: str
    configuration: str
    instances: int
    samples_per_second: float | None = None
    """Predicted, were nothing to change; None while training pauses."""
    liveput_samples_per_second: float | None = None
    """Expected over the horizon under the forecast; None without one."""
    expected_pause_seconds: float | None = None
    runner_up: str = ""
    """The next best configuration."""
    forecast: ForecastSummary | None = None


class Migration(Event):
    """An epoch formed: what that cost. Reported by the grid's first worker."""

    type: Literal["migration"] = "migration"
    revision: int
    kind: MigrationKind
    reason: PlanReason
    resumed_step: int
    """Committed steps when the new epoch started."""
    bytes_moved: int
    pause_seconds: float
    """End of the last committed step to the start of the next step's work."""
    transfer_seconds: float
    steps_replayed: int
    """Steps, or parts of one, whose work was thrown away and is done again."""
    sudden: bool


class RolledBack(Event):
    """A layer had no holder left; the job went back to a checkpoint."""

    type: Literal["rollback"] = "rollback"
    revision: int
    from_step: int
    to_step: int
    layers: tuple[str, ...]


class Failed(Event):
    """The user's code failed: the job ends and is not retried."""

    type: Literal["failure"] = "failure"
    worker: str
    step: int | None
    message: str
    traceback: str = ""


class Condition(Event):
    """The job's state changed in a way a person should hear of."""

    type: Literal["condition"] = "condition"
    reason: str
    message: str


AnyEvent = Annotated[
    NoticeGiven
    | InstanceLost
    | InstanceJoined
    | Planned
    | Migration
    | RolledBack
    | Failed
    | Condition,
    Field(discriminator="type"),
]

_ADAPTER: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)


def parse_event(raw: bytes | str) -> AnyEvent:
    """Parse one event from JSON. Fields of a newer program that are not known here are left out.

    Raises:
        pydantic.ValidationError: if ``raw`` is no event.
    """
    return _ADAPTER.validate_json(raw, extra="ignore")
