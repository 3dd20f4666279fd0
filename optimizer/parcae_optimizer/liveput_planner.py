"""The liveput planner: the layout that is expected to train the most under the forecast.

Observed history → forecast (``parcae_predictor``) → stochastic programme → a layout, with what
was expected of it and of the others, and one sentence that says why.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from cachetools import LRUCache

from parcae_api.history import History
from parcae_api.planning import (
    MOST_WORKERS,
    Alternative,
    ForecastRequest,
    ForecastSummary,
    PlanAnswer,
    PlanRequest,
)
from parcae_optimizer.kept import kept
from parcae_optimizer.layouts import (
    KEEP_WITHIN,
    has_speeds,
    kept_text,
    speed_text,
    why_none,
    workers_text,
)
from parcae_optimizer.lottery import Floats
from parcae_optimizer.measured import MeasuredRules
from parcae_optimizer.programme import Choice, Decision, Programme, laws_of, reach_of
from parcae_optimizer.rules import NOTHING, Grid
from parcae_optimizer.tables import KEPT_BYTES, CostTables
from parcae_predictor.forecast import Forecast, Known, Predictor, Question
from parcae_traces.series import INTERVAL_S, Series

MOST_ALTERNATIVES = 20
_QUANTILES = (0.1, 0.5, 0.9)
_KEPT_PARTS = 30_000
"""Layouts and layers of all models together, one or two kB each: 190 models of 38 layers on 32
instances, or 4 of a thousand layers on 1,024."""
_REACH = 0.98
"""Of the counts that a forecast reaches, the few beyond this quantile are taken as there."""


@dataclass(frozen=True)
class _Known:
    """What earlier requests of the same model have worked out."""

    rules: MeasuredRules
    tables: CostTables

    def __len__(self) -> int:
        """Its layouts, and the layers of the profile that it is found by."""
        return 1 + len(self.rules.layouts) + len(self.rules.state_bytes)


class LiveputPlanner:
    """See the module. Deterministic; what it keeps between requests only saves time."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._rows = kept(KEPT_BYTES)
        self._known: LRUCache[Hashable, _Known] = LRUCache(_KEPT_PARTS, getsizeof=len)

    @property
    def rows_bytes(self) -> int:
        """Of the costs of changes that are kept for later requests, of all models together."""
        return int(self._rows.currsize)

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``."""
        forecast = forecast_of(request, self._predictor)
        known = self._remember(request)
        rules = known.rules
        if not request.samples_per_second:
            rules = rules.as_measured(request.step_seconds, request.profile.global_batch_samples)
        if not rules.grids(request.num_workers):
            return PlanAnswer(
                layout=None, why=why_none(request), forecast=summary_of(request, forecast)
            )
        least, most = reach_of(forecast, _REACH)
        programme = Programme(
            rules=rules,
            interval_seconds=_interval_s(request),
            # This interval trains with what is chosen now; the coming ones bring their changes.
            outcomes=laws_of(forecast),
            least=least,
            most=most,
            current=_current(request, rules),
            tables=known.tables,
        )
        pauses = pauses_now(request, rules, programme.grids)
        decision = programme.decide(request.num_workers, pauses)
        return _answer(request, rules, forecast, decision)

    def _remember(self, request: PlanRequest) -> _Known:
        """The rules for a request: those of its model, unless today's cut is another than theirs.

        A cut that is nearly as good as the best one is kept (``layouts``): moving a boundary
        moves state.
        """
        plain = self._rules_of(request.model_copy(update={"current": None}))
        current = _current(request, plain.rules)
        if request.current is None or plain.rules.has_cut(current, request.current):
            return plain
        return self._rules_of(request)

    def _rules_of(self, request: PlanRequest) -> _Known:
        capacity = _capacity(request)
        key = (
            request.profile,
            request.pipeline,
            request.worker_memory_bytes,
            request.current.boundaries if request.current else None,
            request.rollback_seconds,
            tuple(sorted(request.samples_per_second.items())),
            capacity,
        )
        known = self._known.get(key)
        if known is None:
            rules = MeasuredRules.of(request, capacity)
            known = _Known(rules, CostTables(rules, capacity, rows=self._rows))
            self._known[key] = known
        return known


def forecast_of(request: PlanRequest | ForecastRequest, predictor: Predictor) -> Forecast:
    """What the predictor expects of the instances."""
    return predictor.forecast(
        Question(
            series=_series(request.history),
            now=request.num_workers,
            capacity=_capacity(request),
            horizon=request.horizon,
            seed=request.seed,
            known=Known(likely_removals=min(request.likely_removals, request.num_workers)),
        )
    )


def _series(history: History | None) -> Series:
    intervals = history.intervals if history else ()
    return Series(
        interval_s=history.interval_s if history else INTERVAL_S,
        available=tuple(i.available for i in intervals),
        added=tuple(i.added for i in intervals),
        removed=tuple(i.removed for i in intervals),
    )


def _interval_s(request: PlanRequest | ForecastRequest) -> float:
    return request.history.interval_s if request.history else INTERVAL_S


def _capacity(request: PlanRequest | ForecastRequest) -> int:
    intervals = request.history.intervals if request.history else ()
    seen = max((i.available for i in intervals), default=0)
    return request.capacity or min(max(request.num_workers, seen, 1), MOST_WORKERS)


def _current(request: PlanRequest, rules: MeasuredRules) -> Grid:
    if request.current is None:
        return NOTHING
    configuration = request.current.configuration
    grid = Grid(configuration.data, configuration.pipeline)
    return grid if grid in rules.layouts else NOTHING


def pauses_now(request: PlanRequest, rules: MeasuredRules, grids: tuple[Grid, ...]) -> Floats:
    """[grid] seconds of changing to each layout now: who is left is known, not drawn."""
    return np.array([_pause(request, rules, grid) for grid in grids])


def _pause(request: PlanRequest, rules: MeasuredRules, grid: Grid) -> float:
    current = request.current
    if grid == NOTHING:
        return 0.0
    target = rules.layouts[grid]
    if current is None:
        return rules.regroup_seconds + rules.fill_seconds(target)
    left = request.replicas_left or (current.configuration.data,) * current.configuration.pipeline
    whole = min(left) == current.configuration.data
    if whole and target == current:
        return 0.0
    if not min(left):
        return rules.regroup_seconds + rules.rollback_seconds + rules.fill_seconds(target)
    if target.boundaries == current.boundaries:
        return rules.regroup_seconds + rules.refill_seconds(target, left)
    return rules.regroup_seconds + rules.move_seconds(current, target, left)


def _answer(
    request: PlanRequest, rules: MeasuredRules, forecast: Forecast, decision: Decision
) -> PlanAnswer:
    ranking = [c for c in decision.ranking if c.grid != NOTHING]
    if not ranking:
        return PlanAnswer(
            layout=None, why=why_none(request), forecast=summary_of(request, forecast)
        )
    chosen = _settle(request, rules, ranking)
    others = [c for c in ranking if c.grid != chosen.grid]
    return PlanAnswer(
        layout=rules.layouts[chosen.grid],
        samples_per_second=rules.speed(chosen.grid),
        ideal_samples_per_second=_ideal(request, rules),
        liveput_samples_per_second=_liveput(chosen, decision),
        pause_seconds=chosen.pause_seconds,
        runner_up=str(others[0].grid) if others else "",
        alternatives=tuple(
            Alternative(
                configuration=str(choice.grid),
                samples_per_second=rules.speed(choice.grid),
                liveput_samples_per_second=_liveput(choice, decision),
                pause_seconds=choice.pause_seconds,
            )
            for choice in ranking[:MOST_ALTERNATIVES]
        ),
        forecast=summary_of(request, forecast),
        why=_why(request, rules, forecast, decision, ranking, chosen),
    )


def _liveput(choice: Choice, decision: Decision) -> float:
    """Samples per second; a pause that outlasts the horizon leaves 0, not less than nothing."""
    return max(0.0, choice.samples / decision.seconds)


def _ideal(request: PlanRequest, rules: MeasuredRules) -> float | None:
    if not has_speeds(request):
        return None
    return max(rules.speed(grid) for grid in rules.grids(request.num_workers))


def _settle(request: PlanRequest, rules: MeasuredRules, ranking: list[Choice]) -> Choice:
    """The best, or today's layout where that is as good within what measurements scatter by."""
    best = ranking[0]
    current = _current(request, rules)
    # The programme may always change its mind an interval later: what a wrong choice costs, and
    # what a wrong measurement blurs, is a share of one interval.
    blurred = KEEP_WITHIN * rules.speed(best.grid) * _interval_s(request)
    for choice in ranking:
        same = choice.grid == current and rules.layouts[current] == request.current
        if same and best.samples - choice.samples <= blurred:
            return choice
    return best


def summary_of(request: PlanRequest | ForecastRequest, forecast: Forecast) -> ForecastSummary:
    """What people and metrics want of a forecast."""
    low, median, high = (forecast.quantile(q) for q in _QUANTILES)
    return ForecastSummary(
        model=forecast.model,
        interval_s=_interval_s(request),
        mean=_rounded(forecast.mean()),
        low=_rounded(low),
        high=_rounded(high),
        median=_rounded(median),
        removed=round(float(forecast.removed.sum(axis=1).mean()), 3),
        added=round(float(forecast.added.sum(axis=1).mean()), 3),
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(round(float(v), 3) for v in values)


def _why(
    request: PlanRequest,
    rules: MeasuredRules,
    forecast: Forecast,
    decision: Decision,
    ranking: list[Choice],
    chosen: Choice,
) -> str:
    others = [c for c in ranking if c.grid != chosen.grid]
    parts = [f"{chosen.grid} on {workers_text(request)}"]
    changes = (
        f"{forecast.removed.sum(axis=1).mean():.1f} losses and "
        f"{forecast.added.sum(axis=1).mean():.1f} joins forecast"
    )
    other = str(others[0].grid) if others else ""
    if has_speeds(request):
        parts[0] += (
            f": {speed_text(rules.speed(chosen.grid))} samples/s, "
            f"{speed_text(_liveput(chosen, decision))} expected with {changes}"
        )
        if others:
            other += f" with {speed_text(_liveput(others[0], decision))}"
    else:
        parts[0] += f": by the sizes of the layers, until they are measured, with {changes}"
    if others:
        is_best = chosen.grid == ranking[0].grid
        parts.append(f"next best {other}" if is_best else kept_text(other))
    if spare := request.num_workers - chosen.grid.workers:
        parts.append(f"{spare} spare")
    return ", ".join(parts)
