"""Whether those that could join wait for others that are about to be ready. Pure.

A change of plan stops everybody, so instances that come seconds apart should cause one and not one
each. When the others will be ready, if ever, nobody knows. So it is waited until the samples that
were not trained meanwhile are as many as one change costs: whatever comes, twice what the best
moment would have cost is the most that is lost (the rule of ski rental).
"""

from __future__ import annotations

from dataclasses import replace

from parcae_api.plan import Plan
from parcae_api.planning import PlanAnswer
from parcae_operator.actions import Hold
from parcae_operator.observation import Observation, starting_agents, staying_instances
from parcae_operator.waits import is_over


class Joiners:
    """Remembers since when those outside the grid could join."""

    def __init__(self) -> None:
        self._revision = 0
        self._outside: frozenset[str] = frozenset()
        self._since_unix_s = 0.0

    def on(self, seen: Observation) -> Observation:
        """The look, and when the newest of them came; anew with each plan."""
        revision = seen.plan.revision if seen.plan else 0
        workers = seen.plan.workers if seen.plan else ()
        outside = staying_instances(seen) - {worker.partition("/")[0] for worker in workers}
        if revision != self._revision or outside - self._outside:
            self._since_unix_s = seen.now_unix_s
        self._revision, self._outside = revision, outside
        return replace(seen, joinable_since_unix_s=self._since_unix_s) if outside else seen


def hold(seen: Observation, plan: Plan, answer: PlanAnswer) -> Hold | None:
    """Why a better layout that is possible now is not changed to yet; None where it is.

    Args:
        seen: How things stand.
        plan: The one that serves.
        answer: What the planner says of those that are ready.
    """
    coming, since_unix_s = starting_agents(seen), seen.joinable_since_unix_s
    if not coming or since_unix_s is None:
        return None
    wait_s = _worth_waiting_s(seen, plan, answer)
    if wait_s is None or is_over(since_unix_s, seen.now_unix_s, wait_s):
        return None
    assert answer.layout is not None
    others = "another instance starts" if coming == 1 else f"{coming} other instances start"
    return Hold(
        why=f"{answer.layout.configuration} could train, but {others}: all change at once, or "
        f"after {wait_s:.1f} s, when waiting has cost as much as a change",
        until_unix_s=since_unix_s + wait_s,
    )


def _worth_waiting_s(seen: Observation, plan: Plan, answer: PlanAnswer) -> float | None:
    """Until the faster layout would have gained what changing to it costs; None: not to be told."""
    now = _speed(seen, plan, answer)
    if now is None or not answer.pause_seconds:
        return None
    gain = answer.samples_per_second - now
    return answer.pause_seconds * now / gain if gain > 0 else None


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
