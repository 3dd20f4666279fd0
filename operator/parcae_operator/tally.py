"""What has happened to a job so far, folded into its status: counters, newest decisions. Pure.

The status on the API server is where it is kept: a new operator goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from parcae_api.events import AnyEvent, InstanceLost, Migration, Planned
from parcae_api.job_status import (
    MOST_DECISIONS,
    Decision,
    JobStatus,
    LastMigration,
    MigrationTotals,
)
from parcae_api.planning import PlanAnswer
from parcae_operator.status import timestamp

_LONGEST_WHY = 1024


@dataclass(frozen=True)
class Tally:
    """The story so far."""

    preemptions: int = 0
    preemptions_noticed: int = 0
    migrations: int = 0
    migration_totals: tuple[MigrationTotals, ...] = ()
    steps_replayed: int = 0
    liveput_samples_per_second: float = 0.0
    last_migration: LastMigration | None = None
    decisions: tuple[Decision, ...] = ()
    start_time: str = ""

    @classmethod
    def of(cls, status: JobStatus) -> Tally:
        """As an earlier operator left it."""
        return cls(
            preemptions=status.preemptions,
            preemptions_noticed=status.preemptions_noticed,
            migrations=status.migrations,
            migration_totals=status.migration_totals,
            steps_replayed=status.steps_replayed,
            liveput_samples_per_second=status.liveput_samples_per_second,
            last_migration=status.last_migration,
            decisions=status.decisions,
            start_time=status.start_time,
        )

    def saw(self, event: AnyEvent) -> Tally:
        """With one more event. The same migration or plan twice counts once."""
        match event:
            case InstanceLost():
                return replace(
                    self,
                    preemptions=self.preemptions + 1,
                    preemptions_noticed=self.preemptions_noticed + event.noticed,
                )
            case Planned():
                return self._planned(event)
            case Migration():
                return self._migrated(event)
            case _:
                return self

    def onto(self, status: JobStatus, answer: PlanAnswer | None = None) -> JobStatus:
        """The status with all of this.

        Args:
            status: How things stand.
            answer: The planner's newest. It may be newer than the plan, which stays while it is
                still the best: layers are measured after the first plan, and forecasts change.
        """
        return status.model_copy(
            update={
                "preemptions": self.preemptions,
                "preemptions_noticed": self.preemptions_noticed,
                "migrations": self.migrations,
                "migration_totals": self.migration_totals,
                "steps_replayed": self.steps_replayed,
                "liveput_samples_per_second": self._liveput(status, answer),
                "last_migration": self.last_migration,
                "decisions": self.decisions,
                "start_time": self.start_time,
            }
        )

    def _liveput(self, status: JobStatus, answer: PlanAnswer | None) -> float:
        if not status.configuration:
            return 0.0
        if answer is None or answer.layout is None or answer.ideal_samples_per_second is None:
            return self.liveput_samples_per_second
        if str(answer.layout.configuration) != status.configuration:
            return self.liveput_samples_per_second  # it is published in a moment
        liveput = answer.liveput_samples_per_second
        return answer.samples_per_second if liveput is None else liveput

    def _planned(self, event: Planned) -> Tally:
        if any(decision.revision == event.revision for decision in self.decisions):
            return self
        at = timestamp(event.at_unix_s)
        decision = Decision(
            time=at,
            revision=event.revision,
            reason=str(event.reason),
            configuration=event.configuration,
            why=event.why[:_LONGEST_WHY],
        )
        liveput = event.liveput_samples_per_second
        return replace(
            self,
            decisions=(decision, *self.decisions)[:MOST_DECISIONS],
            liveput_samples_per_second=(event.samples_per_second or 0.0)
            if liveput is None
            else liveput,
            start_time=self.start_time or at,
        )

    def _migrated(self, event: Migration) -> Tally:
        last = self.last_migration
        if last is not None and event.revision <= last.revision:
            return self
        return replace(
            self,
            migrations=self.migrations + 1,
            migration_totals=_with_one_more(self.migration_totals, event),
            steps_replayed=self.steps_replayed + event.steps_replayed,
            last_migration=LastMigration(
                time=timestamp(event.at_unix_s),
                revision=event.revision,
                kind=str(event.kind),
                pause_seconds=event.pause_seconds,
                bytes_moved=event.bytes_moved,
                steps_replayed=event.steps_replayed,
            ),
        )


def with_furthest(status: JobStatus, before: JobStatus) -> JobStatus:
    """The status with what was ever committed: a job that goes back to a checkpoint lost nothing.

    Args:
        status: How things stand.
        before: What was last written.
    """
    steps = max(status.step, before.step, before.steps_committed)
    samples = max(status.samples, before.samples, before.samples_committed)
    return status.model_copy(update={"steps_committed": steps, "samples_committed": samples})


def _with_one_more(
    totals: tuple[MigrationTotals, ...], event: Migration
) -> tuple[MigrationTotals, ...]:
    kind = str(event.kind)
    old = next((each for each in totals if each.kind == kind), MigrationTotals(kind=kind))
    new = old.model_copy(
        update={
            "migrations": old.migrations + 1,
            "pause_seconds": round(old.pause_seconds + event.pause_seconds, 6),
            "bytes_moved": old.bytes_moved + event.bytes_moved,
        }
    )
    others = [each for each in totals if each.kind != kind]
    return tuple(sorted((*others, new), key=lambda each: each.kind))
