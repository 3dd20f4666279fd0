"""Whether those that could join wait for others that are about to be ready. Pure.

A change of plan stops everybody, so instances that come seconds apart should cause one and not one
each. When the others will be ready, if ever, nobody knows. So it is waited until the samples that
were not trained meanwhile are as many as a change costs: whatever comes, a plan loses no more by
waiting than one change would have cost (the rule of ski rental).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from parcae_api.plan import Plan, PlanReason
from parcae_api.planning import PlanAnswer
from parcae_operator.actions import Hold
from parcae_operator.observation import Observation, starting_on_board

LONGEST_S = 60.0
"""Whoever has not started by then most likely never will."""
_ROUNDING_S = 1e-6
_UNFORCED = (PlanReason.JOIN, PlanReason.FORECAST)


@dataclass
class _Waits:
    """Of one plan: it has one budget, however often a wait is broken off and taken up again."""

    revision: int = 0
    hold: Hold | None = None
    """That is in force."""
    whom: frozenset[str] = frozenset()
    """Incarnations that are, or were last, waited for."""
    seconds: float = 0.0
    foregone_samples: float = 0.0

    def go_on(self, seconds: float) -> None:
        """Time has passed."""
        if self.hold is not None:
            self.seconds += seconds
            self.foregone_samples += seconds * self.hold.foregone_samples_per_second


class Joiners:
    """Remembers what waiting has cost since the plan was made, and who was waited for in vain."""

    def __init__(self) -> None:
        self._waits = _Waits()
        self._in_vain: frozenset[str] = frozenset()
        self._seen_unix_s = 0.0

    def on(self, seen: Observation) -> Observation:
        """The look, with who is worth waiting for, and what waiting has cost so far."""
        revision = seen.plan.revision if seen.plan else 0
        starting = starting_on_board(seen)
        if seen.agents and not seen.awaited:  # else the board was away, and not they
            self._in_vain &= starting
        self._waits.go_on(max(0.0, seen.now_unix_s - self._seen_unix_s))
        if revision != self._waits.revision:
            if seen.plan is not None and seen.plan.reason in _UNFORCED:
                # Either all of them came, or the budget was spent on those that still start.
                self._in_vain |= self._waits.whom & starting
            self._waits = _Waits(revision)
        self._seen_unix_s = seen.now_unix_s
        return replace(
            seen,
            starting=starting - self._in_vain,
            waited_s=self._waits.seconds,
            foregone_samples=self._waits.foregone_samples,
        )

    def decided(self, seen: Observation, hold: Hold | None) -> bool:
        """Take in what was decided for the look; whether it is the plan's first wait."""
        is_first = hold is not None and not self._waits.whom
        self._waits.hold = hold
        if hold is not None:
            self._waits.whom = seen.starting
        return is_first


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
    if gain <= 0.0:
        return None
    left_s = min((worth - seen.foregone_samples) / gain, LONGEST_S - seen.waited_s)
    if left_s <= _ROUNDING_S:
        return None
    others = len(seen.starting)
    start = "another instance starts" if others == 1 else f"{others} other instances start"
    return Hold(
        why=f"{answer.layout.configuration} could train, but {start}: one change for all, or in "
        f"{left_s:.1f} s without them, when the wait has cost as much as a change",
        foregone_samples_per_second=gain,
        until_unix_s=seen.now_unix_s + left_s,
    )


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
