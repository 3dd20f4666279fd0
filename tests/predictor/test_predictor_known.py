"""Notices and hints mean the same in every model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from predictor_helpers import CHEAP, HISTORIES, MAKERS, QUICK, ask, questions

from parcae_predictor import HazardPredictor, HazardSettings, Known, Question, predictor_of


@pytest.mark.parametrize("model", CHEAP)
def test_known_removals_are_in_every_path(model: str) -> None:
    @QUICK
    @given(questions())
    def check(question: Question) -> None:
        forecast = MAKERS[model](question.series).forecast(question)
        before = forecast.available + forecast.removed - forecast.added
        for ahead, due in enumerate(question.known.removals[: question.horizon]):
            assert (forecast.removed[:, ahead] >= np.minimum(due, before[:, ahead])).all()

    check()


@pytest.mark.parametrize("model", MAKERS)
def test_a_notice_takes_its_instances_in_its_interval(model: str) -> None:
    question = ask(HISTORIES["constant"], known=Known((0, 3)))
    forecast = MAKERS[model](question.series).forecast(question)
    assert (forecast.removed[:, 1] >= 3).all()


def test_persistence_expects_the_known_and_only_the_known() -> None:
    forecast = predictor_of("persistence").forecast(ask([9] * 20, known=Known((0, 2, 0, 1))))
    assert (forecast.removed == [0, 2, 0, 1] + [0] * 8).all()
    assert not forecast.added.any()


def test_more_notices_than_instances_leave_nobody() -> None:
    forecast = predictor_of("persistence").forecast(ask([4] * 20, known=Known((3, 3))))
    assert (forecast.removed[:, :3] == [3, 1, 0]).all()


def test_notices_beyond_the_horizon_are_not_seen() -> None:
    question = ask([4] * 20, horizon=2, known=Known((0, 0, 4)))
    assert not predictor_of("persistence").forecast(question).removed.any()


def test_a_known_and_a_drawn_removal_of_one_interval_are_one_batch() -> None:
    # In this history 2 go every other minute; a notice for 2 does not make them 4.
    counts = [14, 12] * 30
    question = ask(counts, now=14, known=Known((2,) * 12), num_paths=200)
    assert predictor_of("window").forecast(question).removed.max() == 2


def test_half_of_the_hinted_go_on_average_and_mostly_soon() -> None:
    question = ask([14] * 20, horizon=60, num_paths=4000, known=Known((), 8))
    gone = predictor_of("persistence").forecast(question).removed
    assert gone.sum(axis=1).mean() == pytest.approx(4.0, abs=0.15)
    assert gone[:, :4].sum() > gone[:, 4:].sum()
    # Their fates are tied: all or none of 8 is far likelier than by 8 coins.
    everyone = (gone.sum(axis=1) == 8).mean()
    assert everyone > 0.08
    assert gone.sum(axis=1).max() == 8


def test_the_hinted_are_others_than_the_noticed() -> None:
    question = ask([5] * 20, num_paths=500, known=Known((5,), 5))
    forecast = predictor_of("persistence").forecast(question)
    assert (forecast.removed[:, 0] == 5).all()
    assert not forecast.removed[:, 1:].any()


def test_in_the_hazard_model_a_known_removal_makes_others_likely() -> None:
    # Removals in this history come in pairs of consecutive minutes.
    quiet = [16] * 10
    counts = [*quiet, 14, 12, 13, 14, 15] * 12 + quiet[:4]
    predictor = HazardPredictor(settings=HazardSettings(replayed=0.0))
    plain, warned = (
        predictor.forecast(ask(counts, num_paths=2000, known=Known(known))) for known in ((), (2,))
    )
    follow = [(forecast.removed[:, 1] > 0).mean() for forecast in (plain, warned)]
    assert follow[1] > 1.5 * follow[0]
