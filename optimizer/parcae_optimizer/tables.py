"""Costs of changes as tables, asked of the rules once and kept.

A search compares a few dozen layouts out of a universe of all that are not far from the fastest
for their size. Rows are kept per (instances, layout before), for every number of victims at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from parcae_optimizer.rules import NOTHING, Floats, Grid, Rules

SLOWEST_SHARE = 0.7
"""A layout slower than this share of the fastest for its size is never worth a look."""


@runtime_checkable
class TableRules(Rules, Protocol):
    """Rules that answer for all numbers of victims at once."""

    def change_table(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        """[most_removed+1, len(after)]: row k as ``change_seconds`` with k victims."""
        ...


class CostTables:
    """The layouts worth a look for up to ``most_instances``, their speeds and their costs."""

    def __init__(
        self,
        rules: Rules,
        most_instances: int,
        *,
        slowest_share: float = SLOWEST_SHARE,
        cuts: bool = False,
    ) -> None:
        """Choose the layouts.

        Args:
            rules: Asked for speeds and costs.
            most_instances: For up to so many.
            slowest_share: A layout this much slower than the fastest for its size is left out.
            cuts: Know costs of what may be left of a layout, too, however slow: fewer replicas,
                or a shorter pipeline.
        """
        self._rules = rules
        found = [g for g in rules.grids(most_instances) if g != NOTHING]
        speeds = np.array([rules.speed(g) for g in found])
        cells = np.array([g.workers for g in found], dtype=np.int64)
        self._most_instances = most_instances
        best = _best_by_count(speeds, cells, most_instances)
        near = speeds >= slowest_share * best[cells] if found else np.zeros(0, dtype=bool)
        self.universe: tuple[Grid, ...] = tuple(
            g for g, keep in zip(found, near, strict=True) if keep
        )
        widest: dict[int, int] = {}
        for grid in self.universe if cuts else ():
            widest[grid.pipeline] = max(grid.data, widest.get(grid.pipeline, 0))
        longest = max(widest, default=0)
        known = set(self.universe)
        left = (
            g
            for g in found
            if g not in known
            and (g.data < widest.get(g.pipeline, 0) or (g.data == 1 and g.pipeline < longest))
        )
        self.columns: tuple[Grid, ...] = (*self.universe, *left)
        """The universe, then what may be left of it: what rows have costs of."""
        self._rows: dict[tuple[int, Grid, int], Floats] = {}

    def worth(
        self, least: int, most: int, count: int, speed: Callable[[Grid], float]
    ) -> NDArray[np.int64]:
        """Indices into ``universe`` of the fastest layouts for counts from least to most.

        ``speed`` may have been corrected since the universe was chosen.
        """
        speeds = np.array([speed(g) for g in self.universe])
        cells = np.array([g.workers for g in self.universe], dtype=np.int64)
        best = _best_by_count(speeds, cells, self._most_instances)
        at = np.minimum(np.maximum(cells, least), self._most_instances)
        share = np.where(cells <= most, speeds / np.maximum(best[at], 1e-300), -1.0)
        order = np.argsort(-share, kind="stable")[:count]
        return np.sort(order[share[order] >= 0])

    def rows(self, instances: int, before: Grid, most_removed: int) -> Floats:
        """[most_removed+1, columns] seconds; more victims than instances take them all."""
        key = (instances, before, most_removed)
        found = self._rows.get(key)
        if found is None:
            found = self._ask(instances, before, most_removed)
            self._rows[key] = found
        return found

    def _ask(self, instances: int, before: Grid, most_removed: int) -> Floats:
        possible = min(most_removed, instances)
        if before.workers > instances:  # no such state: whatever it costs is never looked at
            return np.zeros((most_removed + 1, len(self.columns)))
        if isinstance(self._rules, TableRules):
            table = self._rules.change_table(instances, before, possible, self.columns)
        else:
            table = np.stack(
                [
                    self._rules.change_seconds(instances, before, k, self.columns)
                    for k in range(possible + 1)
                ]
            )
        return np.concatenate([table, np.repeat(table[-1:], most_removed - possible, axis=0)])


def _best_by_count(speeds: Floats, cells: NDArray[np.int64], most: int) -> Floats:
    """[most+1]: the fastest speed on so many instances."""
    best = np.zeros(most + 1)
    np.maximum.at(best, cells, speeds)
    return np.maximum.accumulate(best)
