"""Who takes which cell: the assignment that moves the fewest bytes of state.

The cost of giving stage p to a worker is the state of the stage's layers that the worker does not
hold. Intra-stage migration is simply the case in which the total is zero. Solved exactly as a
linear assignment problem (rectangular: workers left over become standbys).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
from scipy.optimize import linear_sum_assignment

from parcae_api.plan import Layout, WorkerId
from parcae_api.profile import Profile


def place(
    layout: Layout,
    profile: Profile,
    workers: Sequence[WorkerId],
    held: Mapping[WorkerId, range],
) -> tuple[tuple[WorkerId, ...], ...]:
    """Assign workers to the grid.

    Args:
        layout: D×P and which layers a stage holds.
        profile: State bytes per layer.
        workers: At least D·P; among equals those earlier in the sequence are taken.
        held: Layers each worker holds up to date; workers not named hold nothing.

    Returns:
        ``grid[d][p]``. The rows are filled in the order of ``workers``, so that members named
        row by row stay in their cells when nothing has to move.

    Raises:
        ValueError: fewer workers than cells.
    """
    d, p = layout.configuration.data, layout.configuration.pipeline
    if len(workers) < d * p:
        raise ValueError(f"{len(workers)} workers cannot fill {d * p} cells")
    missing = np.array(_missing_bytes(layout, profile, workers, held), dtype=float)
    # Whole numbers, exact in a float up to 9e15: bytes decide, and the order only between equals.
    cost = missing * len(workers) + np.arange(len(workers), dtype=float)[:, None]
    rows, columns = linear_sum_assignment(np.tile(cost, (1, d)))
    stage_of = dict(zip(rows.tolist(), (columns % p).tolist(), strict=True))
    by_stage: list[list[WorkerId]] = [[] for _ in range(p)]
    for index in sorted(stage_of):
        by_stage[stage_of[index]].append(workers[index])
    return tuple(tuple(by_stage[s][r] for s in range(p)) for r in range(d))


def bytes_to_move(
    layout: Layout,
    profile: Profile,
    grid: Sequence[Sequence[WorkerId]],
    held: Mapping[WorkerId, range],
) -> int:
    """State that the grid's workers lack, in bytes."""
    workers = [worker for row in grid for worker in row]
    missing = _missing_bytes(layout, profile, workers, held)
    p = layout.configuration.pipeline
    return sum(missing[rank][rank % p] for rank in range(len(workers)))


def _missing_bytes(
    layout: Layout,
    profile: Profile,
    workers: Sequence[WorkerId],
    held: Mapping[WorkerId, range],
) -> list[list[int]]:
    """For every worker and stage, the state of the stage that the worker does not hold."""
    state = [0, *accumulate(layer.state_bytes for layer in profile.layers)]

    def missing(stage: range, has: range) -> int:
        start, stop = max(stage.start, has.start), min(stage.stop, has.stop)
        both = state[stop] - state[start] if start < stop else 0
        return state[stage.stop] - state[stage.start] - both

    stages = [layout.layers(stage) for stage in range(layout.configuration.pipeline)]
    return [[missing(stage, held.get(worker, range(0))) for stage in stages] for worker in workers]
