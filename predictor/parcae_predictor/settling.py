"""What every forecast must obey: what is known comes, nobody absent goes, the capacity holds.

All models draw freely and hand their paths through :func:`settle`, so notices and hints mean the
same in each of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from parcae_predictor.forecast import Counts, Forecast, Question

HINT_MEAN_DELAY = 4.0
"""Intervals until the instances of a hint go, if they go. A rebalance recommendation has no stated
deadline; this is a choice, not a measurement."""


def due_removals(question: Question, rng: np.random.Generator) -> Counts:
    """Draw who goes because of notices (certain) and hints (likely): [paths, horizon].

    Preemptions come in batches, so the fate of hinted instances is drawn together: each path has
    its own probability, uniform in 0..1, with which each of them goes, and one interval, geometric
    with mean ``HINT_MEAN_DELAY``, in which they do. Half of them go on average.
    """
    shape = (question.num_paths, question.horizon)
    due: Counts = np.zeros(shape, dtype=np.int64)
    certain = question.known.removals[: question.horizon]
    due[:, : len(certain)] = certain
    hinted = min(question.known.likely_removals, max(question.now - sum(certain), 0))
    if hinted:
        gone = rng.binomial(hinted, rng.random(question.num_paths))
        interval = rng.geometric(1 / HINT_MEAN_DELAY, question.num_paths) - 1
        (inside,) = np.nonzero(interval < question.horizon)
        due[inside, interval[inside]] += gone[inside]
    return due


def settle(
    model: str,
    question: Question,
    removed: NDArray[np.int64],
    added: NDArray[np.int64],
    due: Counts,
) -> Forecast:
    """Make drawn paths legal, and let what is due come about.

    A drawn removal in an interval with a due one counts as the same batch: the larger is taken.

    Args:
        model: Name of the model that drew.
        question: What was asked.
        removed: [paths, horizon] or anything that broadcasts to it.
        added: Likewise.
        due: [paths, horizon], of :func:`due_removals`.
    """
    # Intervals come first in here: numpy is fastest along rows.
    gone = np.array(np.maximum(removed, due).T, order="C")
    come = np.array(np.broadcast_to(added, due.shape).T, order="C")
    count = np.full(question.num_paths, question.now, dtype=np.int64)
    for ahead in range(question.horizon):
        np.minimum(gone[ahead], count, out=gone[ahead])
        count -= gone[ahead]
        np.minimum(come[ahead], question.capacity - count, out=come[ahead])
        count += come[ahead]
    return Forecast(model, question.now, gone.T.copy(), come.T.copy())
