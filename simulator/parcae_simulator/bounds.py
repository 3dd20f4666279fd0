"""Policies without costs: the ideal, and fixed layouts on on-demand instances."""

from __future__ import annotations

from collections.abc import Sequence

from parcae_optimizer.rules import NOTHING, Grid, Rules
from parcae_simulator.models import fastest
from parcae_simulator.outcome import Interval, Outcome, outcome_of
from parcae_simulator.scenario import Scenario


def ideal(rules: Rules, scenario: Scenario) -> Outcome:
    """In every interval the fastest layout, and changes are free: nothing can train more."""
    steps = []
    for count in scenario.counts:
        grid = fastest(rules, count)
        steps.append(_trained(count, grid, rules, scenario))
    return outcome_of([steps], "ideal", "seen")


def on_demand(rules: Rules, scenario: Scenario, spot_share: float) -> list[Outcome]:
    """Fixed layouts that nothing disturbs, three sizes.

    Args:
        rules: Speeds.
        scenario: Gives the length, the capacity and the mean count.
        spot_share: Spot price over on-demand price.

    Returns:
        The fastest layout on as many instances as were asked for; the layout that is cheapest
        per sample; the fastest that the money for the scenario's spot instances buys.
    """
    grids = [grid for grid in rules.grids(scenario.capacity) if rules.speed(grid) > 0]
    cheapest = min(grids, key=lambda grid: grid.workers / rules.speed(grid), default=NOTHING)
    mean = sum(scenario.counts) / max(1, len(scenario.counts))
    sizes = {
        "ondemand": fastest(rules, scenario.capacity),
        "ondemand-cheapest": cheapest,
        "ondemand-same-spend": fastest(rules, int(spot_share * mean)),
    }
    return [
        outcome_of([_fixed(grid, rules, scenario)], name, "seen", on_demand=True, note=str(grid))
        for name, grid in sizes.items()
    ]


def _fixed(grid: Grid, rules: Rules, scenario: Scenario) -> Sequence[Interval]:
    return [_trained(grid.workers, grid, rules, scenario) for _ in scenario.counts]


def _trained(instances: int, grid: Grid, rules: Rules, scenario: Scenario) -> Interval:
    return Interval(instances, grid, 0.0, rules.speed(grid) * scenario.interval_s)
