"""The paper's predictor behind the common seam, through statsmodels."""

from __future__ import annotations

import numpy as np

from parcae_predictor.asking import check_question
from parcae_predictor.batches import Ints
from parcae_predictor.drift import statsmodels_path
from parcae_predictor.forecast import Forecast, Question
from parcae_predictor.published import WINDOW, PathFit, PublishedForecaster
from parcae_predictor.settling import due_removals, settle

DAMPING_MEMORY = 60
"""Intervals in which a steep rise or fall still damps: as long as a published run."""


class ArimaPredictor:
    """ARIMA(1,1,0) with drift and the published rules, clamped to 0 and the capacity."""

    name = "arima"

    def __init__(self, fit: PathFit = statsmodels_path) -> None:
        """Take the way to fit.

        Args:
            fit: Also :func:`parcae_predictor.drift.drift_path`, a hundred times as fast.
        """
        self._fit = fit

    def forecast(self, question: Question) -> Forecast:
        """One path, but for its random removals; nothing happens beyond its 12 intervals.

        Raises:
            InputError: the question contradicts itself.
        """
        check_question(question)
        rng = np.random.default_rng(question.seed)
        due = due_removals(question, rng)
        counts, gone = question.series.available, question.series.removed
        forecaster = PublishedForecaster(lower=0, upper=question.capacity, fit=self._fit)
        for end in range(max(len(counts) - DAMPING_MEMORY, WINDOW + 1), len(counts)):
            forecaster.observe(counts[end - WINDOW : end])
        added, removed = forecaster.paths(counts, gone, rng, question.num_paths)
        return settle(
            self.name,
            question,
            _fitted(removed, question.horizon),
            _fitted(added, question.horizon),
            due,
        )


def _fitted(paths: Ints, horizon: int) -> Ints:
    """The published 12 intervals, cut or padded with nothing."""
    part = paths[:, :horizon]
    return np.pad(part, ((0, 0), (0, horizon - part.shape[1])))
