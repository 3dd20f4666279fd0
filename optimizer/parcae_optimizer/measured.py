"""Rules of the product: speeds from measured profiles, costs of live migration.

State moves between living processes, so a change costs a regroup, and the bytes that the hungriest
worker lacks over its link; nobody restarts. What is lost with all replicas of a stage costs a
rollback. Who vanishes is random, so each cost is an expectation, in closed form (``lottery``).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from parcae_api.plan import Layout
from parcae_api.planning import PlanRequest
from parcae_optimizer.cost import DEFAULT_BANDWIDTH_BYTES_PER_S
from parcae_optimizer.layouts import candidates, corrected
from parcae_optimizer.lottery import (
    Floats,
    dearest_in_need,
    stage_survival,
    victims_inside,
)
from parcae_optimizer.moving import MOST_PLACED, move_seconds, shared_seconds
from parcae_optimizer.rules import NOTHING, Grid

DEFAULT_REGROUP_SECONDS = 0.1
"""Before any is measured: four workers form new groups in 0.05-0.1 s over gloo."""
_KEPT_LAYOUTS = 100_000
"""Of the layouts by count, and of the pairs that changes lead from and to: some 10 MB each."""


@dataclass(frozen=True)
class _Targets:
    """What of a change depends on neither the lottery nor the count: [after] each."""

    same_cut: NDArray[np.bool_]
    unchanged: NDArray[np.bool_]
    data: NDArray[np.int64]
    cells: NDArray[np.int64]
    full_seconds: Floats
    """Moving the largest stage of the target."""
    missing_seconds: Floats
    """Moving the most that a survivor lacks of any stage of the target."""

    def __len__(self) -> int:
        return len(self.data)


@dataclass
class MeasuredRules:
    """See ``Rules``; built for one model on one kind of machine.

    Args:
        layouts: The best layout of every configuration that fits.
        speeds: Samples per second of each.
        state_bytes: Of every layer.
    """

    layouts: Mapping[Grid, Layout]
    speeds: Mapping[Grid, float]
    state_bytes: Sequence[int]
    bandwidth_bytes_per_s: float = DEFAULT_BANDWIDTH_BYTES_PER_S
    regroup_seconds: float = DEFAULT_REGROUP_SECONDS
    rollback_seconds: float = 0.0
    """Work lost, and state read, when a stage has no replica left."""
    _by_count: MutableMapping[int, tuple[Grid, ...]] = field(
        default_factory=lambda: LRUCache(_KEPT_LAYOUTS, getsizeof=len), repr=False
    )
    _targets: MutableMapping[tuple[Grid, tuple[Grid, ...]], _Targets] = field(
        default_factory=lambda: LRUCache(_KEPT_LAYOUTS, getsizeof=len), repr=False
    )

    @classmethod
    def of(cls, request: PlanRequest, most_workers: int) -> MeasuredRules:
        """Rules for a request as predicted, for up to ``most_workers``."""
        profile = request.profile
        asked = {"num_workers": most_workers, "step_seconds": {}}
        grids = {c.grid: c for c in candidates(request.model_copy(update=asked))}
        return cls(
            layouts={grid: c.layout for grid, c in grids.items()},
            speeds={grid: c.samples_per_second for grid, c in grids.items()},
            state_bytes=[layer.state_bytes for layer in profile.layers],
            bandwidth_bytes_per_s=profile.bandwidth_bytes_per_s or DEFAULT_BANDWIDTH_BYTES_PER_S,
            regroup_seconds=profile.regroup_seconds or DEFAULT_REGROUP_SECONDS,
            rollback_seconds=request.rollback_seconds,
        )

    def grids(self, instances: int) -> Sequence[Grid]:
        """See ``Rules``."""
        found = self._by_count.get(instances)
        if found is None:
            found = tuple(sorted(grid for grid in self.layouts if grid.workers <= instances))
            self._by_count[instances] = found
        return found

    def as_measured(self, step_seconds: Mapping[str, float], batch_samples: int) -> MeasuredRules:
        """The same layouts and costs, with speeds corrected by measured steps."""
        if not step_seconds:
            return self
        predicted = {str(grid): batch_samples / speed for grid, speed in self.speeds.items()}
        steps = corrected(predicted, step_seconds)
        return replace(self, speeds={g: batch_samples / steps[str(g)] for g in self.speeds})

    def has_cut(self, grid: Grid, layout: Layout) -> bool:
        """Whether a layout cuts the layers as ours of that configuration does."""
        return grid in self.layouts and self.layouts[grid].boundaries == layout.boundaries

    def speed(self, grid: Grid) -> float:
        """See ``Rules``."""
        return self.speeds.get(grid, 0.0)

    def overlap_seconds(self, after: Grid) -> float:
        """See ``Rules``: a broken change leaves nothing half done, the next one regroups anew."""
        return self.regroup_seconds

    def change_seconds(
        self, instances: int, before: Grid, removed: int, after: Sequence[Grid]
    ) -> Floats:
        """See ``Rules``."""
        row: Floats = self.change_table(instances, before, removed, after)[removed]
        return row

    def change_table(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        """See ``TableRules``."""
        to = self._to(before, tuple(after))
        if before == NOTHING:
            row = np.where(to.cells > 0, self.regroup_seconds + to.full_seconds, 0.0)
            return np.tile(row, (most_removed + 1, 1))
        keeps = stage_survival(before.data, before.pipeline, instances, most_removed)
        moved = self._repartition(to, before, instances, most_removed)
        growing = to.same_cut & (to.data > before.data)
        same = np.flatnonzero(to.same_cut & ~growing)
        moved[:, same] = self._dearest(before, instances, most_removed)[:, to.data[same]]
        moved[:, growing] = to.full_seconds[growing]
        regroup = np.full(moved.shape, self.regroup_seconds)
        # Without a change, and with all victims among the spares, nothing is regrouped.
        regroup[:, to.unchanged] *= 1.0 - keeps[:, -1:]
        lost = (1.0 - keeps[:, 1:2]) * self.rollback_seconds
        return np.where(to.cells > 0, regroup + moved + lost, 0.0)

    def fill_seconds(self, layout: Layout) -> float:
        """Giving every worker all of its stage."""
        return max(self._stage_seconds(layout))

    def refill_seconds(self, layout: Layout, replicas_left: Sequence[int]) -> float:
        """Giving the stages that lack replicas theirs; the boundaries stay.

        Survivors of a stage share the sending: ceil(missing / left) copies in a row.
        """
        wanted = layout.configuration.data
        rounds = [-(-max(0, wanted - left) // left) for left in replicas_left]
        seconds = self._stage_seconds(layout)
        return max(s * r for s, r in zip(seconds, rounds, strict=True))

    def move_seconds(self, current: Layout, target: Layout, replicas_left: Sequence[int]) -> float:
        """Moving to other boundaries; of very many workers at least so long.

        Args:
            current: The layout until now.
            target: The one to go to.
            replicas_left: Of every stage of ``current``, at least one.
        """
        survivors, cells = sum(replicas_left), target.configuration.workers
        if max(survivors, cells) <= MOST_PLACED:
            shared = shared_seconds(self._prefix, current.boundaries, target.boundaries)
            return move_seconds(shared, replicas_left, target.configuration.data)
        if cells > survivors:
            return self.fill_seconds(target)
        return self._missing(current.boundaries, target.boundaries)

    def _repartition(self, to: _Targets, before: Grid, instances: int, most: int) -> Floats:
        """[removed, after]: survivors lack little, a newcomer among them a whole stage."""
        at_most = np.cumsum(victims_inside(before.workers, instances, most), axis=1)
        room = before.workers - to.cells
        enough = np.where(room >= 0, at_most[:, np.clip(room, 0, most)], 0.0)
        return to.missing_seconds + (to.full_seconds - to.missing_seconds) * (1.0 - enough)

    def _dearest(self, before: Grid, instances: int, most: int) -> Floats:
        """[removed, d]: expected seconds of the largest stage that lacks one of d replicas."""
        prices = _few_levels(sorted(self._stage_seconds(self.layouts[before]), reverse=True))
        return dearest_in_need(prices, before.data, instances, most)

    def _to(self, before: Grid, after: tuple[Grid, ...]) -> _Targets:
        key = (before, after)
        found = self._targets.get(key)
        if found is None:
            found = self._targets[key] = self._describe(before, after)
        return found

    def _describe(self, before: Grid, after: tuple[Grid, ...]) -> _Targets:
        held = self.layouts[before].boundaries if before != NOTHING else ()
        cuts = [self.layouts[g].boundaries if g != NOTHING else () for g in after]
        full = [max(self._stage_seconds(self.layouts[g])) if g != NOTHING else 0.0 for g in after]
        missing = [
            self._missing(held, cut) if held and cut else most
            for cut, most in zip(cuts, full, strict=True)
        ]
        return _Targets(
            same_cut=np.array([bool(held) and cut == held for cut in cuts], dtype=bool),
            unchanged=np.array([grid == before for grid in after], dtype=bool),
            data=np.array([g.data for g in after]),
            cells=np.array([g.workers for g in after]),
            full_seconds=np.array(full),
            missing_seconds=np.array(missing),
        )

    @cached_property
    def _prefix(self) -> Floats:
        seconds = np.asarray(self.state_bytes, dtype=np.float64) / self.bandwidth_bytes_per_s
        return np.concatenate([[0.0], np.cumsum(seconds)])

    def _stage_seconds(self, layout: Layout) -> list[float]:
        """Of every stage: its state over one link."""
        edges = self._prefix[list(layout.boundaries)]
        return [float(s) for s in np.diff(edges)]

    def _missing(self, held: tuple[int, ...], wanted: tuple[int, ...]) -> float:
        """The most that any stage of ``wanted`` lacks on the old stage nearest to it."""
        shared = shared_seconds(self._prefix, held, wanted)
        return float((shared.sum(axis=1) - shared.max(axis=1)).max())


def _few_levels(prices: Sequence[float], levels: int = 4) -> list[float]:
    """Falling prices, each raised to one of a few levels: every level costs a lottery of its own.

    None is raised by more than 1/levels of the spread.
    """
    highest, lowest = prices[0], prices[-1]
    step = (highest - lowest) / levels
    if step <= 0:
        return list(prices)
    return [min(highest, lowest + step * np.ceil((p - lowest) / step - 1e-9)) for p in prices]
