"""Replay: what comes is drawn among the windows that have passed."""

from __future__ import annotations

import numpy as np

from parcae_predictor.asking import check_question
from parcae_predictor.batches import Floats
from parcae_predictor.forecast import Counts, Forecast, Question
from parcae_predictor.rates import BUCKET_OF_AGE, Rows, rows_of
from parcae_predictor.settling import due_removals, settle

LONGEST_MEMORY = 1440
"""Intervals: a day of minutes."""
SIMILAR_HALF_LIFE = 240.0
"""Intervals after which a window's weight is halved, where similar ones are preferred."""
SIMILAR_COUNT = 0.1
"""Difference of the count, in shares of the capacity, that weighs 1/e."""
OTHER_AGE = 0.5
"""Weight of a window that began with another bucket of age, for each of the two ages."""


def num_windows(rows: Rows, horizon: int) -> int:
    """Whole windows in a history."""
    return max(len(rows) - horizon + 1, 0)


def similarity(rows: Rows, horizon: int, now: int, capacity: int) -> Floats:
    """[windows]: weights of the windows by how alike their beginning is to this moment.

    Recent ones, ones that began with about as many instances, and ones as long after the last
    removal and addition weigh more.
    """
    windows = num_windows(rows, horizon)
    weights = np.exp2((np.arange(windows) - windows) / SIMILAR_HALF_LIFE)
    weights *= np.exp(np.abs(rows.before[:windows] - now) / (-SIMILAR_COUNT * capacity))
    for ages in (rows.removal_ages(), rows.addition_ages()):
        buckets = BUCKET_OF_AGE[ages]
        weights *= np.where(buckets[:windows] == buckets[-1], 1.0, OTHER_AGE)
    return weights


def replay(
    rows: Rows,
    num_paths: int,
    horizon: int,
    rng: np.random.Generator,
    weights: Floats | None = None,
) -> tuple[Counts, Counts]:
    """Draw whole windows of the past, events in their order.

    Where the history is shorter than the horizon, all paths begin with it and have nothing where
    it ends.

    Args:
        rows: The history.
        num_paths: Windows to draw.
        horizon: Length of a window.
        rng: Source of the draws.
        weights: [windows], of :func:`similarity`; None: all alike.

    Returns:
        removed, added: each [num_paths, horizon], not yet held to count and capacity.
    """
    length, windows = len(rows), num_windows(rows, horizon)
    if length == 0:
        nothing: Counts = np.zeros((num_paths, horizon), dtype=np.int64)
        return nothing, nothing
    levels = rng.random(num_paths)
    if windows == 0:
        starts = np.zeros(num_paths, dtype=np.int64)
    else:
        cumulative = np.cumsum(np.ones(windows) if weights is None else weights)
        starts = np.searchsorted(cumulative, levels * cumulative[-1], side="right")
        starts = np.minimum(starts, windows - 1)
    where = starts[:, np.newaxis] + np.arange(horizon)
    inside = where < length
    where = np.minimum(where, length - 1)
    return rows.removed[where] * inside, rows.added[where] * inside


class WindowPredictor:
    """Every path is a window of the history. Keeps batches and echoes without modelling them."""

    name = "window"

    def forecast(self, question: Question) -> Forecast:
        """Draw windows of the last day, all alike.

        Raises:
            InputError: the question contradicts itself.
        """
        check_question(question)
        rng = np.random.default_rng(question.seed)
        due = due_removals(question, rng)
        rows = rows_of(question.series, LONGEST_MEMORY)
        removed, added = replay(rows, question.num_paths, question.horizon, rng)
        return settle(self.name, question, removed, added, due)
