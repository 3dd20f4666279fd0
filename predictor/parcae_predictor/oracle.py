"""The future itself, for replays: the bound that no forecast can pass."""

from __future__ import annotations

import numpy as np

from parcae_predictor.asking import check_question, check_series
from parcae_predictor.forecast import Counts, Forecast, Question
from parcae_predictor.settling import due_removals, settle
from parcae_traces.series import Series


class OraclePredictor:
    """Knows the recording. The asked history tells it, by its length, what time it is."""

    name = "oracle"

    def __init__(self, whole: Series) -> None:
        """Take the whole recording.

        Args:
            whole: What :attr:`Question.series` is a beginning of. Beyond its end nothing happens.

        Raises:
            InputError: the recording contradicts itself.
        """
        check_series(whole)
        self._removed = np.asarray(whole.removed, dtype=np.int64)
        self._added = np.asarray(whole.added, dtype=np.int64)

    def forecast(self, question: Question) -> Forecast:
        """All paths are what comes.

        Raises:
            InputError: the question contradicts itself.
        """
        check_question(question)
        first = len(question.series)
        due = due_removals(question, np.random.default_rng(question.seed))
        return settle(
            self.name,
            question,
            _cut(self._removed, first, question.horizon),
            _cut(self._added, first, question.horizon),
            due,
        )


def _cut(row: Counts, first: int, horizon: int) -> Counts:
    """[1, horizon]: the row from ``first`` on, zeros beyond its end."""
    part = row[first : first + horizon]
    return np.pad(part, (0, horizon - len(part)))[np.newaxis]
