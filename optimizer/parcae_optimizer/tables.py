"""Costs of changes as tables, asked of the rules once and kept.

A search compares a few dozen layouts out of a universe of all that are not far from the fastest
for their size. Rows are kept per (instances, layout before), for every number of victims at once,
and hold the layouts that some search has asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from parcae_optimizer.kept import kept
from parcae_optimizer.rules import NOTHING, Floats, Grid, Rules

KEPT_BYTES = 128_000_000
"""Of all rows: those of one request with 1,024 instances have 10 MB."""
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

    _numbers = itertools.count()

    def __init__(
        self,
        rules: Rules,
        most_instances: int,
        *,
        slowest_share: float = SLOWEST_SHARE,
        cuts: bool = False,
        rows: MutableMapping[Hashable, Floats] | None = None,
    ) -> None:
        """Choose the layouts.

        Args:
            rules: Asked for speeds and costs.
            most_instances: For up to so many.
            slowest_share: A layout this much slower than the fastest for its size is left out.
            cuts: Know what may be left of a layout, too, however slow: fewer replicas, or a
                shorter pipeline.
            rows: Where rows are kept; tables may share it. None: one of its own.
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
        """The universe, then what may be left of it."""
        self._number = next(self._numbers)
        self._rows = kept(KEPT_BYTES) if rows is None else rows
        self._place: dict[Grid, int] = {}
        """Where each layout that was ever asked for stands in a row; older rows are shorter."""

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

    def rows(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        """[most_removed+1, len(after)] seconds; more victims than instances take them all."""
        for grid in after:
            self._place.setdefault(grid, len(self._place))
        wanted = [self._place[grid] for grid in after]
        key = (self._number, instances, before, most_removed)
        found = self._rows.get(key)
        here = 0 if found is None else found.shape[1]
        if here <= max(wanted, default=-1):
            more = self._ask(instances, before, most_removed, list(self._place)[here:])
            found = more if found is None else np.concatenate([found, more], axis=1)
            self._rows[key] = found
        return np.zeros((most_removed + 1, 0)) if found is None else found[:, wanted]

    def _ask(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        possible = min(most_removed, instances)
        if before.workers > instances:  # no such state: whatever it costs is never looked at
            return np.zeros((most_removed + 1, len(after)))
        if isinstance(self._rules, TableRules):
            table = self._rules.change_table(instances, before, possible, after)
        else:
            table = np.stack(
                [
                    self._rules.change_seconds(instances, before, k, after)
                    for k in range(possible + 1)
                ]
            )
        return np.concatenate([table, np.repeat(table[-1:], most_removed - possible, axis=0)])


def _best_by_count(speeds: Floats, cells: NDArray[np.int64], most: int) -> Floats:
    """[most+1]: the fastest speed on so many instances."""
    best = np.zeros(most + 1)
    np.maximum.at(best, cells, speeds)
    return np.maximum.accumulate(best)
