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
MOST_KINDS = 8
"""Of migrations: there are three."""

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
    """What it is about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Name
    """Why, in one CamelCase word, for programs."""
    message: Text = ""
    """Why, in one sentence, for people."""
    observed_generation: Count = 0
    """The ``metadata.generation`` that it speaks of."""
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
    """In the grid of the current plan."""
    standby: Count = 0
    """Ready, outside the grid."""
    starting: Count = 0
    """On a node, not ready yet."""
    pending: Count = 0
    """Pods that wait for a node."""
    leaving: Count = 0
    """With a notice, or asked to go."""


class Decision(Manifest):
    """A plan that was published, and why."""

    time: Timestamp
    """When it was published."""
    revision: Count
    """Its number, which only grows."""
    reason: Name
    """What it answers: initial, notice, loss, join, forecast, rollback, suspend or finish."""
    configuration: Name
    """D×P, or ``paused``."""
    why: Text
    """Why this configuration and no other, in words."""


class LastMigration(Manifest):
    """The newest change of plan that formed."""

    time: Timestamp
    """When its workers trained on."""
    revision: Count
    """Of the plan that formed."""
    kind: Name
    """``intra_stage``: regrouped only; ``inter_stage``: a stage's state was copied; ``pipeline``:
    layers were cut anew."""
    pause_seconds: Annotated[float, Field(ge=0)]
    """From the last step before to the first one after."""
    bytes_moved: Count
    """Model state that went from one worker to another."""
    steps_replayed: Count
    """Steps trained a second time because their state was lost."""


class MigrationTotals(Manifest):
    """All changes of plan of one kind that formed, since the job was created."""

    kind: Name
    """As in ``lastMigration``."""
    migrations: Count = 0
    """How many."""
    pause_seconds: Annotated[float, Field(ge=0)] = 0.0
    """Their pauses, added up."""
    bytes_moved: Count = 0
    """Model state that they moved, added up."""


class JobStatus(Manifest):
    """How it goes, written by the operator."""

    observed_generation: Count = 0
    """The newest ``metadata.generation`` that was acted on."""
    phase: Phase = Phase.PENDING
    """The job in one word, derived from its conditions; programs read those."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=16)] = ()
    """What holds of the job now, and why."""
    configuration: Name = ""
    """D×P of the current plan: replicas by pipeline stages. Empty while paused."""
    revision: Count = 0
    """Number of the current plan, which only grows."""
    step: Count = 0
    """Committed steps."""
    total_steps: Count = 0
    """Steps of the whole job; 0 until the user's code is loaded."""
    samples: Count = 0
    """Committed samples: each counted once, whatever was preempted."""
    instances: Count = 0
    """Instances that are ready, and to stay."""
    instance_counts: InstanceCounts = InstanceCounts()
    throughput_samples_per_second: float = 0.0
    """Committed samples per second, as measured."""
    liveput_samples_per_second: float = 0.0
    """Committed samples per second that the plan expects over the horizon, under the newest
    forecast of preemptions; 0 while paused, and until layers are measured."""
    preemptions: Count = 0
    """Instances lost, noticed or not, since the job was created."""
    preemptions_noticed: Count = 0
    """Those of them that a notice announced."""
    migrations: Count = 0
    """Changes of plan that formed."""
    migration_totals: Annotated[tuple[MigrationTotals, ...], Field(max_length=MOST_KINDS)] = ()
    """The same by kind, with what they cost; a kind that never was is left out."""
    steps_committed: Count = 0
    """The furthest step that was ever committed. Unlike ``step`` it does not fall when the job goes
    back to a checkpoint."""
    samples_committed: Count = 0
    """The samples up to that step."""
    steps_replayed: Count = 0
    """Steps, or parts of one, trained a second time because their state was lost."""
    failures: Count = 0
    """Crashes of the user's code that counted against ``backoffLimit``."""
    last_migration: LastMigration | None = None
    decisions: Annotated[tuple[Decision, ...], Field(max_length=MOST_DECISIONS)] = ()
    """The newest plans, newest first."""
    start_time: Timestamp = ""
    """When the first plan was published."""
    completion_time: Timestamp = ""
    """When the last step was committed."""

    def condition(self, type_: ConditionType) -> Condition | None:
        """The condition of that type, or None."""
        return next((c for c in self.conditions if c.type == type_), None)

    def holds(self, type_: ConditionType) -> bool:
        """Whether that condition is True."""
        found = self.condition(type_)
        return found is not None and found.status == "True"
