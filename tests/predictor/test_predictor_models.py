"""Every model on every kind of history; what all forecasts obey."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from predictor_helpers import (
    CAPACITY,
    CHEAP,
    HISTORIES,
    MAKERS,
    QUICK,
    ask,
    assert_legal,
    questions,
)

from parcae_api.errors import InputError
from parcae_predictor import DEFAULT, NAMES, Question, predictor_of
from parcae_predictor.registry import check_name


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("model", MAKERS)
def test_every_model_survives_every_history(model: str, history: str) -> None:
    question = ask(HISTORIES[history])
    predictor = MAKERS[model](question.series)
    forecast = predictor.forecast(question)
    assert_legal(forecast, question)
    assert forecast.model == predictor.name
    again = predictor.forecast(question)
    assert np.array_equal(forecast.removed, again.removed)
    assert np.array_equal(forecast.added, again.added)


@pytest.mark.parametrize("model", CHEAP)
def test_whatever_is_asked_the_paths_are_legal_and_the_same_again(model: str) -> None:
    @QUICK
    @given(questions())
    def check(question: Question) -> None:
        forecast = MAKERS[model](question.series).forecast(question)
        assert_legal(forecast, question)
        again = MAKERS[model](question.series).forecast(replace(question))
        assert np.array_equal(forecast.available, again.available)
        assert np.array_equal(forecast.removed, again.removed)

    check()


@pytest.mark.parametrize("model", ["hazard", "window"])
def test_another_seed_draws_other_paths(model: str) -> None:
    first, second = (
        MAKERS[model](ask([]).series).forecast(ask(HISTORIES["oscillating"], seed=seed))
        for seed in (0, 1)
    )
    assert not np.array_equal(first.available, second.available)


@pytest.mark.parametrize("model", ["window", "persistence", "arima", "oracle"])
def test_a_constant_history_goes_on(model: str) -> None:
    question = ask(HISTORIES["constant"])
    forecast = MAKERS[model](question.series).forecast(question)
    assert (forecast.available == CAPACITY).all()


def test_the_window_model_replays_what_was_and_nothing_else() -> None:
    counts = [CAPACITY] * 14 + [CAPACITY - 3] + [CAPACITY] * 14
    forecast = predictor_of("window").forecast(ask(counts, now=CAPACITY, num_paths=300))
    assert set(np.unique(forecast.removed)) == {0, 3}
    assert (forecast.removed.sum(axis=1) <= 3).all()
    # One of the 17 windows or so lies on neither side of the loss: most paths have it.
    assert 0.4 < (forecast.removed.sum(axis=1) == 3).mean() < 1


def test_a_history_shorter_than_the_horizon_is_replayed_from_its_begin() -> None:
    question = ask([5, 6, 6, 4], now=8)
    forecast = predictor_of("window").forecast(question)
    assert forecast.added[0, :3].tolist() == [1, 0, 0]
    assert forecast.removed[0, :3].tolist() == [0, 0, 2]
    assert not forecast.removed[:, 3:].any()
    assert not forecast.added[:, 3:].any()


def test_the_oracle_knows_and_ends_with_its_recording() -> None:
    counts = [8, 8, 7, 9, 9, 3, 3, 5]
    whole = ask(counts).series
    question = ask(counts[:4], series=whole.window(0, 4), horizon=6)
    forecast = predictor_of("oracle", whole).forecast(question)
    assert forecast.available[0].tolist() == [9, 3, 3, 5, 5, 5]
    assert forecast.removed[0].tolist() == [0, 6, 0, 0, 0, 0]


def test_persistence_expects_nothing() -> None:
    forecast = predictor_of("persistence").forecast(ask(HISTORIES["oscillating"]))
    assert not forecast.removed.any()
    assert not forecast.added.any()


def test_mean_and_quantiles_are_those_of_the_paths() -> None:
    forecast = predictor_of("hazard").forecast(ask(HISTORIES["one by one"]))
    assert forecast.mean() == pytest.approx(forecast.available.mean(axis=0))
    assert (forecast.quantile(0.1) <= forecast.quantile(0.9)).all()


def test_names() -> None:
    assert {predictor_of(name).name for name in NAMES} == set(NAMES)
    assert NAMES[0] == DEFAULT == "hazard"


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match="model 'prophet' is unknown; give one of hazard, window"):
        predictor_of("prophet")
    with pytest.raises(InputError, match="'prophet' is unknown"):
        check_name("prophet")


def test_the_oracle_needs_a_future() -> None:
    with pytest.raises(InputError, match="model 'oracle' knows the future and so works on record"):
        predictor_of("oracle")
