"""No change but the known: what every other model must beat."""

from __future__ import annotations

import numpy as np

from parcae_predictor.asking import check_question
from parcae_predictor.forecast import Forecast, Question
from parcae_predictor.settling import due_removals, settle


class PersistencePredictor:
    """Expects that nothing happens, except what notices and hints say."""

    name = "persistence"

    def forecast(self, question: Question) -> Forecast:
        """All paths are alike, unless there are hints.

        Raises:
            InputError: the question contradicts itself.
        """
        check_question(question)
        due = due_removals(question, np.random.default_rng(question.seed))
        nothing = np.zeros((1, 1), dtype=np.int64)
        return settle(self.name, question, nothing, nothing, due)
