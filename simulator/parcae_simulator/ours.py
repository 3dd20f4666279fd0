"""Our policy: the stochastic programme under a forecast, as the product's planner runs it."""

from __future__ import annotations

import numpy as np

from parcae_optimizer.programme import Programme, laws_of, reach_of
from parcae_optimizer.rules import NOTHING, Floats, Grid, Rules
from parcae_optimizer.tables import CostTables
from parcae_predictor import HORIZON, Forecast, HazardPredictor, Predictor, Question
from parcae_simulator.engine import View

_REACH = 0.99
"""Counts that a forecast reaches beyond this quantile are taken as there."""


class Ours:
    """Forecasts and plans anew each interval."""

    def __init__(
        self,
        rules: Rules,
        tables: CostTables,
        interval_s: float,
        predictor: Predictor | None = None,
        horizon: int = HORIZON,
    ) -> None:
        self._rules = rules
        self._tables = tables
        self._interval_s = interval_s
        self._predictor = predictor or HazardPredictor()
        self._horizon = horizon

    def decide(self, view: View) -> Grid:
        """See ``Policy``."""
        forecast = self._predictor.forecast(
            Question(
                series=view.history, now=view.now, capacity=view.capacity, horizon=self._horizon
            )
        )
        programme = self._programme(view, forecast)
        if view.event is None:
            return programme.decide_ahead(view.now, view.owed_s).chosen.grid
        pauses = pauses_of(self._rules, view, programme.grids)
        return programme.decide(view.now, pauses, carried=True).chosen.grid

    def _programme(self, view: View, forecast: Forecast) -> Programme:
        least, most = reach_of(forecast, _REACH)
        return Programme(
            rules=self._rules,
            tables=self._tables,
            interval_seconds=self._interval_s,
            outcomes=laws_of(forecast),
            least=least,
            most=most,
            current=view.layout,
            ahead=view.event is None,
        )


def pauses_of(rules: Rules, view: View, grids: tuple[Grid, ...]) -> Floats:
    """[grid] seconds of changing now, what is still owed of an earlier change included."""
    assert view.event is not None
    removed = min(view.event[1], view.before)
    costs = np.zeros(len(grids))
    real = [i for i, grid in enumerate(grids) if grid != NOTHING]
    costs[real] = rules.change_seconds(
        view.before, view.layout, removed, tuple(grids[i] for i in real)
    )
    if not view.owed_s:
        return costs
    overlaps = np.array([rules.overlap_seconds(g) for g in grids])
    return np.where(costs > 0, costs + overlaps, view.owed_s)
