"""Liveput: the throughput that a layout is expected to have after preemptions.

A layout D×P that keeps M replicas of its hardest-hit stage goes on as M×P, with no state moved
(paper, section 4): liveput = Σ_k P(k vanish) Σ_d P(M = d | k) · speed(d×P). Spare instances take
part in the lottery: a victim among them costs nothing.

Where an instance holds several GPUs it vanishes as one. Its GPUs hold consecutive stages of one
pipeline, or several whole pipelines where these are shorter, so the lottery is held among
*units*: runs of stages, or groups of replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parcae_optimizer.lottery import Floats, least_survivors
from parcae_optimizer.rules import Grid


@dataclass(frozen=True, slots=True)
class Units:
    """How a grid lies on instances."""

    data: int
    """Rows of units."""
    pipeline: int
    """Units per row."""
    replicas: int
    """Replicas that a row holds; the last row may hold fewer."""

    @property
    def instances(self) -> int:
        """Instances that the grid occupies."""
        return self.data * self.pipeline


def units_of(grid: Grid, gpus_per_instance: int = 1) -> Units:
    """Lay a grid on instances, no pipeline spread over more of them than it needs.

    Raises:
        ValueError: ``gpus_per_instance`` is below 1.
    """
    if gpus_per_instance < 1:
        raise ValueError(f"gpus_per_instance is {gpus_per_instance}; give 1 or more")
    replicas = max(1, gpus_per_instance // grid.pipeline)
    return Units(
        data=-(-grid.data // replicas),
        pipeline=-(-grid.pipeline // gpus_per_instance),
        replicas=min(replicas, grid.data),
    )


def replicas_left(
    grid: Grid, instances: int, most_removed: int, gpus_per_instance: int = 1
) -> Floats:
    """The law of the replicas that go on without any state moving.

    Args:
        grid: The layout.
        instances: N; those that the grid does not occupy are spare.
        most_removed: K.
        gpus_per_instance: GPUs that vanish together.

    Returns:
        [K+1, D+1]: row k victims, column d; rows sum to 1.
    """
    units = units_of(grid, gpus_per_instance)
    rows = least_survivors(units.data, units.pipeline, instances, most_removed)
    if units.replicas == 1:
        return rows
    return _split_rows(rows, grid.data, units)


def _split_rows(rows: Floats, data: int, units: Units) -> Floats:
    """From surviving rows to surviving replicas: the last row may be a short one.

    Given that u of U rows survive, every set of u is equally likely: the short one is among them
    with probability u/U.
    """
    law: Floats = np.zeros((rows.shape[0], data + 1))
    short = data - (units.data - 1) * units.replicas
    for row in range(units.data + 1):
        with_short = row / units.data
        full = row * units.replicas
        if row:
            law[:, full - units.replicas + short] += rows[:, row] * with_short
        if row < units.data:
            law[:, full] += rows[:, row] * (1 - with_short)
    return law


def liveput(
    grid: Grid,
    instances: int,
    removed_law: Sequence[float],
    speeds: Sequence[float],
    gpus_per_instance: int = 1,
) -> float:
    """Expected samples per second after the preemptions that ``removed_law`` expects.

    Args:
        grid: The layout.
        instances: N.
        removed_law: P(k instances vanish), k = 0, 1, …
        speeds: Samples per second of d×P for d = 0 … D; the first is 0.
        gpus_per_instance: GPUs that vanish together.
    """
    most = min(len(removed_law) - 1, instances)
    left = replicas_left(grid, instances, most, gpus_per_instance)
    # Fewer replicas may be faster (a hole in a table): the survivors then run so.
    best = np.maximum.accumulate(np.asarray(speeds, dtype=np.float64))
    law = np.asarray(removed_law[: most + 1], dtype=np.float64)
    return float(law @ (left @ best))
