"""The published planner: a dynamic programme over one list of coming events.

Source: Parcae (NSDI 2024), its artifact's planner, restated. After each interval a layout is
reached either with its change finished (*paid*) or with a rest of it carried over (*owing*).
Kept are the most samples of each; the first layout of the best end is the decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parcae_optimizer.rules import NOTHING, Floats, Grid, Rules

Events = Sequence[tuple[int, int]]
"""Added and removed, per coming interval."""


@dataclass(frozen=True)
class _Nodes:
    """Layouts after some intervals; -inf samples where none leads there."""

    grids: tuple[Grid, ...]
    count: int
    paid: Floats
    """[G] most samples with nothing owed."""
    paid_first: NDArray[np.int64]
    """[G] the first decision on that way."""
    owing: Floats
    """[G] most samples with something owed."""
    owing_first: NDArray[np.int64]
    owed_s: Floats
    """[G] the least owed among those."""


class PublishedPlanner:
    """Plans for given events; what is asked again is remembered."""

    def __init__(self, rules: Rules, interval_s: float) -> None:
        self._rules = rules
        self._interval_s = interval_s
        self._costs: dict[tuple[tuple[Grid, ...], int, int, tuple[Grid, ...]], Floats] = {}
        self._gains: dict[tuple[Grid, ...], tuple[Floats, Floats]] = {}
        self._targets: dict[int, tuple[Grid, ...]] = {}

    def plan(self, count: int, layout: Grid, owed_s: float, events: Events) -> Grid:
        """The layout to have after the first of the events.

        Args:
            count: Instances before the first event.
            layout: Until now.
            owed_s: Rest of an unfinished change.
            events: At least one.
        """
        starts_paid = owed_s <= 0
        unknown = np.full(1, -np.inf)
        zero = np.zeros(1)
        no_first = np.zeros(1, dtype=np.int64)
        nodes = _Nodes(
            (layout,),
            count,
            zero if starts_paid else unknown,
            no_first,
            unknown if starts_paid else zero,
            no_first,
            np.full(1, owed_s),
        )
        first: tuple[Grid, ...] = ()
        for added, removed in events:
            nodes = self._step(nodes, added, min(removed, nodes.count), not first)
            first = first or nodes.grids
        return first[_best_end(nodes)]

    def _step(self, nodes: _Nodes, added: int, removed: int, is_first: bool) -> _Nodes:
        """One interval: all changes from the nodes to every layout that then fits."""
        after = nodes.count + added - removed
        targets = self._fitting(after)
        speeds, overlaps = self._gain(targets)
        cost = self._cost(nodes, removed, targets)
        resumed = np.where(cost > 0, cost + overlaps, nodes.owed_s[:, None])
        pause = np.concatenate([cost, resumed])
        start = np.concatenate([nodes.paid, nodes.owing])[:, None]
        left = self._interval_s - pause
        paid = np.where(left >= 0, start + speeds * left, -np.inf)
        owing = np.where(left < 0, start, -np.inf)
        paid_row = paid.argmax(axis=0)
        most = owing.max(axis=0)
        owed = np.where(owing == most, -left, np.inf)
        owing_row = owed.argmin(axis=0)
        columns = np.arange(len(targets))
        if is_first:
            paid_first = owing_first = columns
        else:
            firsts = np.concatenate([nodes.paid_first, nodes.owing_first])
            paid_first, owing_first = firsts[paid_row], firsts[owing_row]
        return _Nodes(
            targets,
            after,
            paid[paid_row, columns],
            paid_first,
            most,
            owing_first,
            owed[owing_row, columns],
        )

    def _fitting(self, instances: int) -> tuple[Grid, ...]:
        if (known := self._targets.get(instances)) is None:
            known = tuple(self._rules.grids(instances)) or (NOTHING,)
            self._targets[instances] = known
        return known

    def _cost(self, nodes: _Nodes, removed: int, targets: tuple[Grid, ...]) -> Floats:
        """[nodes, targets] seconds."""
        key = (nodes.grids, nodes.count, removed, targets)
        if (known := self._costs.get(key)) is None:
            rows = [
                self._rules.change_seconds(nodes.count, grid, removed, targets)
                for grid in nodes.grids
            ]
            known = self._costs[key] = np.array(rows)
        return known

    def _gain(self, targets: tuple[Grid, ...]) -> tuple[Floats, Floats]:
        """[targets] speeds and overlap seconds."""
        if (known := self._gains.get(targets)) is None:
            speeds = np.array([self._rules.speed(grid) for grid in targets])
            overlaps = np.array([self._rules.overlap_seconds(grid) for grid in targets])
            known = self._gains[targets] = (speeds, overlaps)
        return known


def _best_end(nodes: _Nodes) -> int:
    """First decision of the end with the most samples, then the least owed."""
    samples = np.concatenate([nodes.paid, nodes.owing])
    owed = np.concatenate([np.zeros(len(nodes.grids)), nodes.owed_s])
    firsts = np.concatenate([nodes.paid_first, nodes.owing_first])
    best = np.lexsort((owed, -samples))[0]
    return int(firsts[best])
