"""The replay: a policy names layouts, the recording plays, rules say what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from parcae_optimizer.rules import NOTHING, Grid, Rules
from parcae_simulator.ledger import Ledger
from parcae_simulator.outcome import Outcome, outcome_of
from parcae_simulator.scenario import Scenario
from parcae_traces import Series


class Timing(StrEnum):
    """When a policy decides."""

    SEEN = "seen"
    """Once the interval's event has happened, as a controller does that re-plans at each event."""
    BEFORE = "before"
    """Ahead of the event, as the published simulation does for its own policy."""


@dataclass(frozen=True)
class View:
    """What a policy knows when it decides on one interval."""

    index: int
    """Number of the interval in the series."""
    before: int
    """Instances before the interval's event."""
    event: tuple[int, int] | None
    """Added and removed in this interval; None while it is not yet known."""
    layout: Grid
    """Until now."""
    owed_s: float
    """Rest of an unfinished change."""
    history: Series
    """All intervals before this one, and this one where its event is known."""
    capacity: int

    @property
    def now(self) -> int:
        """Instances, as far as is known."""
        return self.before + (self.event[0] - self.event[1] if self.event else 0)


class Policy(Protocol):
    """Chooses a layout for each interval. One instance serves one replay, in order."""

    def decide(self, view: View) -> Grid:
        """The layout to have; it is cut down where it no longer fits after the event."""
        ...


def replay(
    name: str,
    policy: Policy,
    rules: Rules,
    scenario: Scenario,
    timing: Timing,
) -> Outcome:
    """Replay a scenario under a policy, interval by interval.

    Each interval the policy decides, the event happens, the layout is cut down if it no longer
    fits, the change is charged at its mean, and what is left of the interval trains.
    """
    ledger = Ledger(scenario.interval_s)
    layout, count = NOTHING, scenario.before
    for index in range(scenario.first, scenario.stop):
        added, removed = event = scenario.event(index)
        seen = timing is Timing.SEEN
        view = View(
            index=index,
            before=count,
            event=event if seen else None,
            layout=layout,
            owed_s=ledger.owed_s,
            history=scenario.series.window(0, index + seen),
            capacity=scenario.capacity,
        )
        after = count + added - removed
        target = cut_down(policy.decide(view), after)
        if target != NOTHING:
            lost = min(removed, count)
            cost_s = float(rules.change_seconds(count, layout, lost, (target,))[0])
            ledger.charge(cost_s, rules.overlap_seconds(target) if ledger.owed_s else 0.0)
        ledger.earn(after, target, rules.speed(target))
        layout, count = target, after
    return outcome_of([ledger.intervals], name, timing.value)


def cut_down(target: Grid, instances: int) -> Grid:
    """The layout that remains of a target: fewer replicas, or a pipeline of all there are."""
    if target.workers <= instances:
        return target
    if data := instances // target.pipeline:
        return Grid(data, target.pipeline)
    return Grid(1, instances) if instances else NOTHING
