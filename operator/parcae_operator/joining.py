"""Whether those that could join wait for others that are about to be ready. Pure.

A change of plan stops everybody, so instances that come seconds apart should cause one and not one
each. When the others will be ready, if ever, nobody knows. So it is waited until the samples that
were not trained meanwhile are as many as a change costs: whatever comes, a plan loses no more by
waiting than one change would have cost (the rule of ski rental).
"""

from __future__ import annotations

from dataclasses import replace

from parcae_api.plan import Plan
from parcae_api.planning import PlanAnswer
from parcae_operator.actions import Hold
from parcae_operator.observation import Observation, starting_on_board, staying_instances
from parcae_operator.waits import is_over

LONGEST_S = 60.0
"""Whoever has not started by then most likely never will."""


class Joiners:
    """Remembers what the wait has cost since it began, and who was waited for in vain."""

    def __init__(self) -> None:
        self._revision = 0
        self._in_vain: frozenset[str] = frozenset()
        self._hold: Hold | None = None
        self._foregone_samples = 0.0
        self._began_unix_s = self._seen_unix_s = 0.0

    def on(self, seen: Observation) -> Observation:
        """The look, with who is worth waiting for, and what waiting has cost so far."""
        revision = seen.plan.revision if seen.plan else 0
        starting = starting_on_board(seen)
        self._in_vain &= starting
        if revision != self._revision or not _outside(seen):
            self._end()
        elif self._hold is not None:
            passed_s = max(0.0, seen.now_unix_s - self._seen_unix_s)
            self._foregone_samples += passed_s * self._hold.foregone_samples_per_second
            is_spent = self._foregone_samples >= self._hold.worth_samples
            if is_spent or is_over(self._began_unix_s, seen.now_unix_s, LONGEST_S):
                self._in_vain = starting
                self._end()
        self._revision, self._seen_unix_s = revision, seen.now_unix_s
        return replace(
            seen,
            starting=starting - self._in_vain,
            foregone_samples=self._foregone_samples,
        )

    def decided(self, hold: Hold | None) -> bool:
        """Take in what was decided for the look; whether a wait has begun."""
        begins = hold is not None and self._hold is None
        if begins:
            self._began_unix_s = self._seen_unix_s
        if hold is None:
            self._end()
        self._hold = hold
        return begins

    def _end(self) -> None:
        self._hold, self._foregone_samples = None, 0.0


def hold(seen: Observation, plan: Plan, answer: PlanAnswer) -> Hold | None:
    """Why a larger layout that is possible now is not changed to yet; None where it is.

    Args:
        seen: How things stand.
        plan: The one that serves.
        answer: What the planner says of those that are ready.
    """
    assert plan.layout is not None
    assert answer.layout is not None
    grows = answer.layout.configuration.workers > plan.layout.configuration.workers
    now = _speed(seen, plan, answer)
    if not seen.starting or not grows or now is None or not answer.pause_seconds:
        return None
    gain, worth = answer.samples_per_second - now, answer.pause_seconds * now
    left = worth - seen.foregone_samples
    if gain <= 0.0 or left <= 0.0:
        return None
    left_s = min(left / gain, LONGEST_S)
    others = len(seen.starting)
    start = "another instance starts" if others == 1 else f"{others} other instances start"
    return Hold(
        why=f"{answer.layout.configuration} could train, but {start}: one change for all, or in "
        f"{left_s:.1f} s without them, when the wait has cost as much as a change",
        foregone_samples_per_second=gain,
        worth_samples=worth,
        until_unix_s=seen.now_unix_s + left_s,
    )


def _outside(seen: Observation) -> frozenset[str]:
    """Instances that are ready and not in the grid."""
    workers = seen.plan.workers if seen.plan else ()
    return staying_instances(seen) - {worker.partition("/")[0] for worker in workers}


def _speed(seen: Observation, plan: Plan, answer: PlanAnswer) -> float | None:
    """Samples per second of today's layout: as the planner sees it, else as measured."""
    assert plan.layout is not None
    name = str(plan.layout.configuration)
    for known in answer.alternatives:
        if known.configuration == name:
            return known.samples_per_second
    step_seconds = seen.progress.step_seconds if seen.progress else None
    if not step_seconds or seen.profile is None:
        return None
    return seen.profile.global_batch_samples / step_seconds
