"""The published cost rules: what a change of layout costs in the Parcae artifact's simulator.

Source: Parcae (NSDI 2024), its artifact's ``liveput`` cost code, restated; the artifact estimates
the same means from 10,000 draws each, here they are exact. Three kinds of change: intra-stage
(every stage keeps enough replicas: regroup only), inter-stage (stages in need are refilled) and
pipeline migration (another depth: stages are handed out anew).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parcae_optimizer.rules import NOTHING, Floats, Grid
from parcae_simulator.handout import mean_sends
from parcae_simulator.lottery import deficit_mean, inside, keeps
from parcae_simulator.profiles import Kind, ModelProfile
from parcae_simulator.times import Times

Index = NDArray[np.intp]

_MOST_ASKED = 2_000
_MOST = (2, 4, 6, 8, 12, 16, 24, 32)
"""Tables are made for so many victims at most: few are common, and small tables are fast."""


class PublishedRules:
    """``parcae_optimizer.rules.Rules`` of a published profile.

    Where no layout is allowed, the instances form one pipeline that earns nothing and costs
    nothing to enter (the artifact stops with an error there).
    """

    def __init__(self, profile: ModelProfile, capacity: int = 32) -> None:
        self.profile = profile
        self.times = Times(profile)
        self._grids: dict[int, tuple[Grid, ...]] = {}
        self._targets = _Targets(self._allowed(capacity))
        self._given: dict[Grid, tuple[Floats, Floats]] = {}
        self._rows: dict[tuple[int, Grid, int], Floats] = {}
        self._overlaps: dict[Grid, float] = {}

    def grids(self, instances: int) -> Sequence[Grid]:
        """Every allowed D×P on so many instances, by D, then P; else one idle pipeline."""
        if (known := self._grids.get(instances)) is None:
            known = self._grids[instances] = tuple(self._allowed(instances))
        return known

    def speed(self, grid: Grid) -> float:
        """Samples per second as measured; 0 for layouts that are not allowed or not measured."""
        return self.profile.speed(grid) if self.profile.allows(grid) else 0.0

    def change_seconds(
        self, instances: int, before: Grid, removed: int, after: Sequence[Grid]
    ) -> Floats:
        """Expected pause of going from ``before`` to each of ``after``; see ``Rules``."""
        index = self._index(after)
        return np.asarray(self._kept_row(instances, before, removed)[index])

    def change_table(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        """[most_removed + 1, after] seconds: row k as ``change_seconds`` with k victims."""
        index = self._index(after)
        self._given_victims(before, most_removed)
        return np.array(
            [self._kept_row(instances, before, k)[index] for k in range(most_removed + 1)]
        )

    def overlap_seconds(self, after: Grid) -> float:
        """A restart of the target: charged when an earlier change is still unfinished."""
        if (known := self._overlaps.get(after)) is None:
            known = self.times.restart(after, Kind.REMOVE) / 1000 if after != NOTHING else 0.0
            self._overlaps[after] = known
        return known

    def _allowed(self, instances: int) -> list[Grid]:
        stages = self.profile.stages
        found = [
            grid
            for data in range(1, instances // stages.min + 1)
            for pipeline in range(stages.min, min(stages.max, instances // data) + 1)
            if self.profile.allows(grid := Grid(data, pipeline))
        ]
        return found or ([Grid(1, instances)] if instances > 0 else [])

    def _index(self, after: Sequence[Grid]) -> Index:
        """Columns in the tables, which grow when larger layouts are asked for."""
        if (index := self._targets.find(after)) is not None:
            return index
        missing = [g for g in after if g not in self._targets.positions]
        if any(map(self.profile.allows, missing)):
            most = max(grid.workers for grid in after)
            self._targets = _Targets([*self._allowed(most), *filter(self.profile.allows, after)])
            self._given.clear()
            self._rows.clear()
        return self._targets.add(after)

    def _kept_row(self, instances: int, before: Grid, removed: int) -> Floats:
        key = (instances, before, removed)
        if (row := self._rows.get(key)) is None:
            row = self._rows[key] = self._row(*key)
        return row

    def _row(self, instances: int, before: Grid, removed: int) -> Floats:
        """[targets + 1] mean seconds; the last column is that of layouts that are not allowed."""
        add_ms, remove_ms = self._given_victims(before, removed)
        chances = inside(instances, before.workers, removed)
        adds = self._targets.workers > before.workers - removed
        row = np.where(adds, chances @ add_ms[: removed + 1], chances @ remove_ms[: removed + 1])
        if removed == 0 and (same := self._targets.positions.get(before)) is not None:
            row[same] = 0.0
        return np.append(row / 1000, 0.0)

    def _given_victims(self, before: Grid, most: int) -> tuple[Floats, Floats]:
        """[at least most + 1, targets] mean milliseconds by victims in the grid, of each kind."""
        known = self._given.get(before)
        if known is None or len(known[0]) <= most:
            most = next((size for size in _MOST if size >= most), most)
            tables = [np.zeros((most + 1, len(self._targets.grids))) for _ in Kind]
            sends = self._sends(before, most)
            for stages, columns in self._targets.by_depth.items():
                if stages == before.pipeline:
                    self._fill_same_depth(tables, before, columns, most)
                else:
                    self._fill_other_depth(tables, sends[stages], columns)
            known = self._given[before] = (tables[0], tables[1])
        return known

    def _sends(self, before: Grid, most: int) -> dict[int, Floats]:
        """By new depth: [most + 1] mean milliseconds of completing the last member served."""
        depths = [depth for depth in self._targets.by_depth if depth != before.pipeline]
        if before == NOTHING:
            return {depth: np.full(most + 1, self.times.send(0.0)) for depth in depths}
        if not depths:
            return {}
        lackings = [self.times.lacking(before.pipeline, depth) for depth in depths]
        return dict(zip(depths, mean_sends(before, lackings, self.times.send, most), strict=True))

    def _fill_same_depth(
        self, tables: list[Floats], before: Grid, columns: list[int], most: int
    ) -> None:
        costs = self.times.stage_send(before.pipeline).tolist()
        for column in columns:
            grid = self._targets.grids[column]
            intra_ms = self.times.regroup(grid, Kind.REMOVE) + self.profile.process_ms
            kept = keeps(before, grid.data, most)
            refill_ms = deficit_mean(before, grid.data, costs, most)
            for table, kind in zip(tables, Kind, strict=True):
                restart_ms = self.times.restart(grid, kind)
                table[:, column] = kept * intra_ms + (1 - kept) * restart_ms + refill_ms

    def _fill_other_depth(self, tables: list[Floats], sends: Floats, columns: list[int]) -> None:
        for column in columns:
            grid = self._targets.grids[column]
            copies_ms = self.times.stage_send(grid.pipeline).max() if grid.data > 1 else 0.0
            for table, kind in zip(tables, Kind, strict=True):
                table[:, column] = sends + copies_ms + self.times.restart(grid, kind)


class _Targets:
    """Layouts that have a column in the tables."""

    def __init__(self, grids: Sequence[Grid]) -> None:
        self.grids = tuple(dict.fromkeys(grids))
        self.positions = {grid: column for column, grid in enumerate(self.grids)}
        self.workers = np.array([grid.workers for grid in self.grids])
        self.by_depth: dict[int, list[int]] = {}
        for column, grid in enumerate(self.grids):
            self.by_depth.setdefault(grid.pipeline, []).append(column)
        # Answers are kept by identity: planners ask with the same few sequences again and again.
        self._asked: dict[int, tuple[Sequence[Grid], Index]] = {}

    def find(self, after: Sequence[Grid]) -> Index | None:
        """[len(after)] columns, if this very sequence was added before."""
        asked = self._asked.get(id(after))
        return asked[1] if asked is not None and asked[0] is after else None

    def add(self, after: Sequence[Grid]) -> Index:
        """[len(after)] columns; unknown layouts have the one behind the last."""
        end = len(self.grids)
        index = np.array([self.positions.get(grid, end) for grid in after], dtype=np.intp)
        if isinstance(after, tuple):
            if len(self._asked) > _MOST_ASKED:
                self._asked.clear()
            self._asked[id(after)] = (after, index)
        return index
