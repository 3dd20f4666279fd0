"""Scores against their definitions, and an evaluation that sees nothing of the future."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictor_helpers import CAPACITY, QUICK, ask, series_from

from parcae_api.errors import InputError
from parcae_predictor import (
    Forecast,
    HazardPredictor,
    OraclePredictor,
    PersistencePredictor,
    Question,
    evaluate,
    load_prior,
)
from parcae_predictor.evaluate import (
    geometric_mean,
    independent,
    judged_predictor,
    kin_of,
)
from parcae_predictor.judging import judge
from parcae_predictor.prior import RECORDINGS
from parcae_predictor.scores import covered, crps
from parcae_traces import bundled_traces, cut, find_trace, parse_segment, series_of


@QUICK
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(0, 30))
def test_crps_is_the_area_between_the_distributions(paths: list[int], truth: int) -> None:
    samples = np.asarray(paths)[:, np.newaxis]
    grid = np.arange(31)
    below = (samples <= grid).mean(axis=0)
    area = float(((below - (truth <= grid)) ** 2).sum())
    assert crps(samples, np.asarray([truth]))[0] == pytest.approx(area)


def test_coverage() -> None:
    samples = np.repeat(np.arange(101)[:, np.newaxis], 4, axis=1)
    assert covered(samples, np.asarray([9, 10, 90, 91])).tolist() == [False, True, True, False]


@dataclass
class Spy:
    """Remembers what it was asked, and answers like persistence."""

    name: str = "spy"
    asked: list[Question] = field(default_factory=list)

    def forecast(self, question: Question) -> Forecast:
        self.asked.append(question)
        return PersistencePredictor().forecast(question)


def test_every_origin_is_asked_with_the_past_and_nothing_else() -> None:
    counts = [(i * 5) % 11 for i in range(40)]
    series = series_from(counts)
    spy = Spy()
    scores = evaluate(spy, series, CAPACITY, trace="x", num_paths=3)
    assert scores.num_origins == len(spy.asked) == 40 - 12 - 12 + 1
    for origin, question in enumerate(spy.asked, start=12):
        assert question.series == series.window(0, origin)
        assert question.now == counts[origin - 1]
        assert (question.capacity, question.horizon, question.num_paths) == (CAPACITY, 12, 3)
    assert (scores.count_ratio, scores.removals_ratio) == (1, 1)
    assert len({question.seed for question in spy.asked}) == len(spy.asked)


def test_persistence_by_hand() -> None:
    counts = [8] * 12 + [6] * 6 + [7] * 6
    scores = evaluate(PersistencePredictor(), series_from(counts), CAPACITY)
    assert scores.num_origins == 1
    assert scores.mae_mean == scores.mae_median == scores.crps_count == scores.still_count == 1.5
    assert scores.crps_removals == scores.still_removals == 2
    assert scores.coverage == 0


def test_the_oracle_makes_no_error_however_long_the_recording() -> None:
    series = series_from([(i * i // 7) % (CAPACITY + 1) for i in range(1600)])
    scores = evaluate(OraclePredictor(series), series, CAPACITY, stride=100, num_paths=2)
    assert scores.crps_count == scores.crps_removals == scores.mae_mean == 0
    assert scores.coverage == 1


def test_ratios_where_persistence_makes_no_error() -> None:
    calm = series_from([8] * 30)
    scores = evaluate(PersistencePredictor(), calm, CAPACITY)
    assert scores.count_ratio == 1
    assert replace(scores, crps_count=0.1).count_ratio == float("inf")
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1)
    assert geometric_mean([]) == 1


def test_a_short_recording_is_refused() -> None:
    with pytest.raises(InputError, match=r"trace 'x' has 23 intervals; .* at least 24"):
        evaluate(PersistencePredictor(), series_from([8] * 23), CAPACITY, trace="x")


def test_the_judged_recording_is_not_in_the_prior() -> None:
    p3 = find_trace("p3")
    assert kin_of(p3) == kin_of(find_trace("p3-lasp")) == kin_of(find_trace("p3-dense-8")) == {"p3"}
    assert kin_of(find_trace("g4dn")) == {"g4dn"}
    # A copy that does not tell its source, and a part of it.
    copy = replace(p3, name="mine", source="my own")
    assert kin_of(copy) == kin_of(cut(copy, parse_segment("3-5"))) == {"p3"}
    assert kin_of(cut(p3, parse_segment("0-0.1"))) == {"p3"}
    stranger = replace(copy, lives=copy.lives[:40])
    assert kin_of(stranger) == frozenset()
    judged = judged_predictor("hazard", p3)
    question = ask([16] * 5)
    honest = HazardPredictor(load_prior(frozenset({"p3"})))
    assert np.array_equal(judged.forecast(question).removed, honest.forecast(question).removed)
    peeking = HazardPredictor().forecast(question)
    assert not np.array_equal(judged.forecast(question).removed, peeking.removed)


def test_a_mean_counts_each_recording_once() -> None:
    assert independent(bundled_traces()) == RECORDINGS
    parts = [find_trace("p3-hadp"), find_trace("p3-dense-8")]
    assert len(independent(parts)) == 1


def test_hazard_beats_persistence_and_the_published_predictor_loses() -> None:
    """The order of the models, on every recording; every 7th minute, for speed."""
    traces = [find_trace(name) for name in RECORDINGS]
    found = {
        (scores.trace, scores.model): scores
        for scores in judge(traces, ["hazard", "window", "arima"], every=7, jobs=1)
    }
    for name in RECORDINGS:
        hazard, arima = found[name, "hazard"], found[name, "arima"]
        assert hazard.count_ratio < 0.95
        assert hazard.removals_ratio < 0.95
        assert arima.count_ratio > 1
        assert hazard.crps_count < found[name, "window"].crps_count
    mean = geometric_mean(found[name, "hazard"].count_ratio for name in RECORDINGS)
    assert mean <= 0.83
    mean = geometric_mean(found[name, "hazard"].removals_ratio for name in RECORDINGS)
    assert mean <= 0.78


def test_judging_in_processes_gives_the_same() -> None:
    traces = [cut(find_trace("p3"), parse_segment("5-6"))]
    alone, together = (
        {scores.model: scores for scores in judge(traces, ["hazard", "window"], jobs=jobs)}
        for jobs in (1, 2)
    )
    assert alone == together
    assert set(alone) == {"hazard", "window"}
    assert series_of(traces[0]).num_eventful() > 0
