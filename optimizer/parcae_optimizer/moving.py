"""How long layers take to move to other stages, when it is known who is left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from parcae_optimizer.rules import Floats

MOST_PLACED = 128
"""Workers of which each gets its place; the assignment of more would take too long."""


def shared_seconds(seconds: Floats, held: Sequence[int], wanted: Sequence[int]) -> Floats:
    """[new stage, old stage]: what both have in common.

    Args:
        seconds: [layers + 1] rising: what the layers before each one take over one link.
        held: Boundaries of the old stages.
        wanted: Boundaries of the new ones.
    """
    old, new = np.array(held), np.array(wanted)
    start = np.maximum(new[:-1, None], old[None, :-1])
    stop = np.maximum(np.minimum(new[1:, None], old[None, 1:]), start)
    return np.asarray(seconds[stop] - seconds[start])


def move_seconds(shared: Floats, left: Sequence[int], data: int) -> float:
    """Until the hungriest worker has its new stage, and the busiest holders have sent theirs.

    Workers take their places for the fewest bytes (``placement``); who is new lacks a whole stage.
    The holders of an old stage share what others need of it.

    Args:
        shared: As of ``shared_seconds``.
        left: Workers that hold each old stage, at least one.
        data: Replicas of the new stages.
    """
    stages, old_stages = shared.shape
    workers = np.repeat(np.arange(old_stages), left)
    newcomers = max(0, data * stages - len(workers))
    held = np.concatenate([shared[:, workers], np.zeros((stages, newcomers))], axis=1).T
    lacks = shared.sum(axis=1)[None, :] - held  # [worker, new stage]
    takers, places = linear_sum_assignment(np.tile(lacks, (1, data)))
    gets = places % stages
    needs = shared[gets]  # [taker, old stage]
    keep = takers < len(workers)
    needs[keep, workers[takers[keep]]] = 0.0
    busiest = float((needs.sum(axis=0) / np.asarray(left)).max())
    return max(float(lacks[takers, gets].max()), busiest)
