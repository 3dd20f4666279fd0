"""Who takes which cell: the assignment that moves the fewest bytes of state.

The cost of giving stage p to a worker is the state of the stage's layers that the worker does not
hold. Intra-stage migration is simply the case in which the total is zero. Solved exactly as a
linear assignment problem (rectangular: workers left over become standbys).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
        ``grid[d][p]``. A worker keeps its row where it can.

    Raises:
        ValueError: fewer workers than cells.
    """
    d, p = layout.configuration.data, layout.configuration.pipeline
    if len(workers) < d * p:
        raise ValueError(f"{len(workers)} workers cannot fill {d * p} cells")
    missing = np.array(
        [[_missing(layout, profile, s, held.get(w)) for s in range(p)] for w in workers]
    )
    # Far below one byte, so that it only decides between equals: earlier workers first.
    order = np.arange(len(workers), dtype=float)[:, None] * 1e-6
    rows, columns = linear_sum_assignment(np.tile(missing + order, (1, d)))
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
    return sum(
        _missing(layout, profile, stage, held.get(worker))
        for row in grid
        for stage, worker in enumerate(row)
    )


def _missing(layout: Layout, profile: Profile, stage: int, held: range | None) -> int:
    return sum(
        profile.layers[k].state_bytes for k in layout.layers(stage) if held is None or k not in held
    )
