"""Rules of live migration on a published profile: what this project does, on the same machines.

State moves between living processes (``parcae_optimizer.measured``), so a change costs a regroup
and what moves over one link at the profile's rate for large transfers. Instances that join are
brought up beside the training; what a layout with them gains over the best one without them is
missing for that long. The first start is paid in full.

Assumed, as the profiles know no live migration: a regroup takes 0.1 s, as measured for four
workers on one machine (``parcae local``); a removal without notice that takes all replicas of a
stage costs a read of the last save, through one store or one link a stage, and half the time
between saves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parcae_api.plan import Configuration, Layout
from parcae_optimizer.measured import DEFAULT_REGROUP_SECONDS, MeasuredRules
from parcae_optimizer.rules import NOTHING, Floats, Grid
from parcae_simulator.profiles import Kind, ModelProfile
from parcae_simulator.times import Times, stage_starts

SAVE_EVERY_S = 60.0
"""Checkpoints are written beside the training."""


class OfLayouts:
    """``parcae_optimizer.rules.Rules`` from measured ones, that also knows cut-down layouts.

    A replay may end up in a layout that is not among the measured ones: it trains nothing, costs
    nothing to enter, and is left as if nothing were held.
    """

    def __init__(self, rules: MeasuredRules) -> None:
        self._rules = rules

    def grids(self, instances: int) -> Sequence[Grid]:
        """Every measured layout on so many instances, by D, then P."""
        return self._rules.grids(instances)

    def speed(self, grid: Grid) -> float:
        """Samples per second; 0 for layouts that were not measured."""
        return self._rules.speed(grid)

    def overlap_seconds(self, after: Grid) -> float:
        """A change that breaks off another one regroups anew."""
        return self._rules.overlap_seconds(after)

    def change_seconds(
        self, instances: int, before: Grid, removed: int, after: Sequence[Grid]
    ) -> Floats:
        """Expected pause of going from ``before`` to each of ``after``; see ``Rules``."""
        return np.asarray(self.change_table(instances, before, removed, after)[removed])

    def change_table(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        """[most_removed + 1, after] seconds: row k as ``change_seconds`` with k victims."""
        held = before if self.speed(before) else NOTHING
        known = [grid if self.speed(grid) else NOTHING for grid in after]
        return self._rules.change_table(instances, held, most_removed, known)


class LiveRules(OfLayouts):
    """``parcae_optimizer.rules.Rules`` of live migration; see the module."""

    def __init__(
        self,
        profile: ModelProfile,
        *,
        sudden: bool = False,
        serial_store: bool = False,
        regroup_seconds: float = DEFAULT_REGROUP_SECONDS,
    ) -> None:
        self._times = Times(profile)
        layers = len(profile.layer_parameters)
        grids = [grid for grid in profile.measured if profile.allows(grid)]
        largest, us = max(profile.transfer_us.items())
        state_bytes = [n * profile.state_bytes_per_parameter for n in profile.layer_parameters]
        bandwidth = largest / us * 1e6
        readers = 1 if serial_store else profile.stages.min
        rollback_s = SAVE_EVERY_S / 2 + sum(state_bytes) / readers / bandwidth
        rules = MeasuredRules(
            layouts={grid: _layout(grid, layers) for grid in grids},
            speeds={grid: profile.speed(grid) for grid in grids},
            state_bytes=state_bytes,
            bandwidth_bytes_per_s=bandwidth,
            regroup_seconds=regroup_seconds,
            rollback_seconds=rollback_s if sudden else 0.0,
        )
        super().__init__(rules)
        self._start_s = {grid: self._bring_up_s(grid) for grid in grids}
        self._fastest: dict[int, float] = {}

    def change_table(
        self, instances: int, before: Grid, most_removed: int, after: Sequence[Grid]
    ) -> Floats:
        """The pause, and what waiting for joiners costs, in seconds; see ``OfLayouts``."""
        pause = super().change_table(instances, before, most_removed, after)
        starts = self.speed(before) == 0
        survivors = instances - np.arange(most_removed + 1)
        there = np.zeros_like(survivors) if starts else survivors
        return np.asarray(pause + self._waiting_s(there, after))

    def _waiting_s(self, there: NDArray[np.int64], after: Sequence[Grid]) -> Floats:
        """[there, after] what is missing while joiners start, in seconds of the new speed."""
        cells = np.array([grid.workers for grid in after], dtype=np.int64)
        start_s = np.array([self._start_s.get(grid, 0.0) for grid in after])
        speeds = np.array([self.speed(grid) or np.inf for grid in after])
        meanwhile = np.array([self._best_speed(count) for count in there.tolist()])
        missing = np.maximum(0.0, 1 - meanwhile[:, None] / speeds)
        return np.asarray(np.where(cells > there[:, None], start_s * missing, 0.0))

    def _best_speed(self, instances: int) -> float:
        if (known := self._fastest.get(instances)) is None:
            known = max(map(self.speed, self.grids(instances)), default=0.0)
            self._fastest[instances] = known
        return known

    def _bring_up_s(self, grid: Grid) -> float:
        """Process, rendezvous and model of a joiner, without forming groups."""
        start_ms = self._times.restart(grid, Kind.ADD) - self._times.regroup(grid, Kind.ADD)
        return start_ms / 1000


def _layout(grid: Grid, num_layers: int) -> Layout:
    return Layout(
        configuration=Configuration(data=grid.data, pipeline=grid.pipeline),
        boundaries=stage_starts(num_layers, grid.pipeline),
        micro_batches=(1,) * grid.data,
    )
