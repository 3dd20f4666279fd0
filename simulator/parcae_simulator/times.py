"""Elementary times of the published cost rules: stages, sending, regrouping, restarting.

Source: the cost code of the Parcae artifact (NSDI 2024), restated. All times are milliseconds.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from parcae_optimizer.rules import Floats, Grid
from parcae_simulator.profiles import Kind, ModelProfile

REGROUP_BASE_MS = 35.0
CHECKPOINT_MS = 14_000.0
"""Saving and loading a checkpoint, in the published reactive baseline."""


@cache
def stage_starts(num_layers: int, stages: int) -> tuple[int, ...]:
    """The first layer of each stage, and the number of layers as an end.

    Each stage gets (L-1) div P layers and stage 0 one more; what remains goes, one each, to the
    stages before the last one, from the back.
    """
    share, rest = divmod(num_layers - 1, stages)
    sizes = [share] * stages
    sizes[0] += 1
    for stage in range(stages - 2, stages - 2 - rest, -1):
        sizes[stage] += 1
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    return tuple(starts)


class Times:
    """Elementary times of one model, in milliseconds."""

    def __init__(self, profile: ModelProfile) -> None:
        self._profile = profile
        points = sorted(profile.transfer_us.items())
        self._bytes = np.array([size for size, _ in points], dtype=np.float64)
        self._ms = np.array([us / 1000 for _, us in points])
        self._sums = np.concatenate(
            [[0.0], np.cumsum(np.array(profile.layer_parameters, dtype=np.float64))]
        )

    def send(self, num_bytes: Floats | float) -> Floats:
        """From one worker to another: interpolated between measured sizes.

        Below the smallest size its time; beyond the largest one in proportion.
        """
        size = np.asarray(num_bytes, dtype=np.float64)
        beyond = np.maximum(size / self._bytes[-1], 1.0)
        return np.asarray(np.interp(size, self._bytes, self._ms) * beyond)

    @cached_property
    def _stage_ms(self) -> dict[int, Floats]:
        return {}

    def stage_send(self, stages: int) -> Floats:
        """[P] sending the state of each stage."""
        if (known := self._stage_ms.get(stages)) is None:
            known = self._stage_ms[stages] = self.send(self.stage_bytes(stages))
        return known

    def stage_bytes(self, stages: int) -> Floats:
        """[P] state bytes of each stage."""
        return self._stage_parameters(stages) * self._profile.state_bytes_per_parameter

    def lacking(self, old: int, new: int) -> Floats:
        """[new stages, old stages] state bytes that a member of an old stage lacks of a new one."""
        size = len(self._profile.layer_parameters)
        of_old, of_new = stage_starts(size, old), stage_starts(size, new)
        first = np.maximum.outer(of_new[:-1], of_old[:-1])
        stop = np.maximum(np.minimum.outer(of_new[1:], of_old[1:]), first)
        shared = self._sums[stop] - self._sums[first]
        lacking = self._stage_parameters(new)[:, None] - shared
        return np.asarray(lacking * self._profile.state_bytes_per_parameter)

    def regroup(self, grid: Grid, kind: Kind) -> float:
        """Forming the process groups of a layout."""
        return REGROUP_BASE_MS + self._profile.regroup_ms.ms(grid, kind)

    def restart(self, grid: Grid, kind: Kind) -> float:
        """Starting processes, building the model and regrouping; added workers rendezvous too."""
        profile = self._profile
        total = self.regroup(grid, kind) + profile.process_ms + self.build(grid.pipeline)
        if kind is Kind.ADD:
            total += profile.rendezvous_ms + profile.restart_extra_ms
        return total

    def build(self, stages: int) -> float:
        """Building the model; depths that were not measured take the time of the nearest."""
        known = self._profile.build_ms
        if (exact := known.get(stages)) is not None:
            return exact
        return known[min(known, key=lambda depth: (abs(depth - stages), depth))]

    def _stage_parameters(self, stages: int) -> Floats:
        starts = np.array(stage_starts(len(self._profile.layer_parameters), stages))
        return np.asarray(np.diff(self._sums[starts]))
