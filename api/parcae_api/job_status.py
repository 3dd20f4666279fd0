"""The status of a ParcaeJob: written by the operator alone, read by people and tools.

Conditions are the truth; the phase is derived from them, for a column. Counters survive a restart
of the operator, which goes on from what it reads here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from parcae_api.model import Manifest

MOST_DECISIONS = 10

Text = Annotated[str, Field(max_length=1024)]
Name = Annotated[str, Field(max_length=64)]
Timestamp = Annotated[str, Field(max_length=32)]
"""RFC 3339 in UTC, as Kubernetes writes it; empty before it has happened."""
Count = Annotated[int, Field(ge=0)]


class ConditionType(StrEnum):
    """The conditions of a job; any phase is derived from them."""

    READY = "Ready"
    """Training commits steps."""
    PROGRESSING = "Progressing"
    """Training, or on its way to; False while it has to wait."""
    DEGRADED = "Degraded"
    """Something is not as it should be; training may go on in spite of it."""
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"


class Condition(Manifest):
    """One condition, with Kubernetes' standard fields."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: Name
    """CamelCase, for programs."""
    message: Text = ""
    """One sentence, for people."""
    observed_generation: Count = 0
    last_transition_time: Timestamp = ""
    """When ``status`` last flipped."""


class Phase(StrEnum):
    """A job in one word, derived from its conditions."""

    PENDING = "Pending"
    TRAINING = "Training"
    MIGRATING = "Migrating"
    PAUSED = "Paused"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"


class InstanceCounts(Manifest):
    """Instances by what they do now."""

    training: Count = 0
    standby: Count = 0
    starting: Count = 0
    pending: Count = 0
    """Pods that wait for a node."""
    leaving: Count = 0
    """With a notice, or asked to go."""


class Decision(Manifest):
    """A plan that was published, and why."""

    time: Timestamp
    revision: Count
    reason: Name
    """The plan's reason: initial, notice, loss, join, forecast, rollback, suspend or finish."""
    configuration: Name
    """D×P, or ``paused``."""
    why: Text


class LastMigration(Manifest):
    """The newest change of plan that formed."""

    time: Timestamp
    revision: Count
    kind: Name
    pause_seconds: Annotated[float, Field(ge=0)]
    bytes_moved: Count
    steps_replayed: Count


class JobStatus(Manifest):
    """What the operator writes back."""

    observed_generation: Count = 0
    """The newest spec that was acted on."""
    phase: Phase = Phase.PENDING
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = ()
    configuration: Name = ""
    """D×P of the current plan, empty while paused."""
    revision: Count = 0
    """Of the current plan."""
    step: Count = 0
    """Committed steps."""
    total_steps: Count = 0
    """Of the whole job; 0 until the user's code is loaded."""
    samples: Count = 0
    """Committed samples: each counted once, whatever was preempted."""
    instances: Count = 0
    """Ready, and to stay."""
    instance_counts: InstanceCounts = InstanceCounts()
    throughput_samples_per_second: float = 0.0
    """Measured."""
    liveput_samples_per_second: float = 0.0
    """Expected over the horizon under the forecast, by the newest plan."""
    preemptions: Count = 0
    """Instances lost, noticed or not, since the job was created."""
    preemptions_noticed: Count = 0
    migrations: Count = 0
    """Plans that formed, the first one aside."""
    failures: Count = 0
    """Crashes of the user's code that counted against backoffLimit."""
    last_migration: LastMigration | None = None
    decisions: Annotated[tuple[Decision, ...], Field(max_length=MOST_DECISIONS)] = ()
    """The newest plans, newest first."""
    start_time: Timestamp = ""
    """When the first plan was published."""
    completion_time: Timestamp = ""

    def condition(self, type_: ConditionType) -> Condition | None:
        """The condition of that type, or None."""
        return next((c for c in self.conditions if c.type == type_), None)

    def holds(self, type_: ConditionType) -> bool:
        """Whether that condition is True."""
        found = self.condition(type_)
        return found is not None and found.status == "True"
