"""What the hazard model counts, and what it draws from that."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictor_helpers import CAPACITY, HISTORIES, QUICK, ask, series_from

from parcae_predictor import HazardPredictor, HazardSettings, load_prior
from parcae_predictor.batches import ALL, Batches, from_shares
from parcae_predictor.hazard import draw
from parcae_predictor.prior import FILE, RECORDINGS
from parcae_predictor.prior_maker import written
from parcae_predictor.rates import OLDEST, Tallies, Tally, look, rows_of
from parcae_predictor.window import similarity

NOTHING_ELSE = load_prior(frozenset(RECORDINGS))
"""Of no recording at all."""


def batches(*sizes: tuple[float, float, bool]) -> Batches:
    columns = list(zip(*sizes, strict=True)) or [(), (), ()]
    return Batches(
        np.asarray(columns[0], dtype=np.float64),
        np.asarray(columns[1], dtype=np.float64),
        np.asarray(columns[2], dtype=np.bool_),
    )


def chances(found: Batches) -> dict[int, float]:
    law = found.law()
    result: dict[int, float] = {}
    for size, share in zip(law.sizes.tolist(), np.diff(law.cumulative, prepend=0), strict=True):
        result[size] = result.get(size, 0) + float(share)
    return {size: share for size, share in result.items() if share > 1e-12}


def test_sizes_in_full_are_drawn_as_often_as_seen() -> None:
    found = batches((1, 1, False), (3, 1, False), (3, 1, False), (2, 1, False))
    assert chances(found) == pytest.approx({1: 0.25, 2: 0.25, 3: 0.5})
    assert found.law().probability_of_all() == 0


def test_a_size_cut_short_says_at_least() -> None:
    # By Kaplan and Meier: 1 with 1/3, then the one cut at 2 splits on what is larger: 4.
    assert chances(batches((1, 1, False), (2, 1, True), (4, 1, False))) == pytest.approx(
        {1: 1 / 3, 4: 2 / 3}
    )
    # Nothing larger was seen in full: whatever there is.
    found = batches((1, 1, False), (2, 3, True))
    assert chances(found) == pytest.approx({1: 0.25, ALL: 0.75})
    assert found.law().probability_of_all() == pytest.approx(0.75)
    # At one size, those in full come first: the one cut short was at least so large.
    assert chances(batches((2, 1, True), (2, 1, False))) == pytest.approx({2: 0.5, ALL: 0.5})


def test_without_any_batch_a_size_is_1() -> None:
    law = batches().law()
    assert law.draw(3, np.random.default_rng(0)).tolist() == [1, 1, 1]
    assert law.probability_of_all() == 0
    assert chances(batches((3, 0.0, False))) == {1: 1.0}


@QUICK
@given(
    st.lists(
        st.tuples(st.integers(1, 30).map(float), st.floats(1e-6, 1), st.booleans()), max_size=20
    )
)
def test_a_law_of_sizes_is_a_law(found: list[tuple[float, float, bool]]) -> None:
    law = batches(*found).law()
    assert (np.diff(law.cumulative) >= -1e-12).all()
    assert law.cumulative[-1] == 1
    drawn = law.draw(200, np.random.default_rng(0))
    assert set(drawn.tolist()) <= {int(size) for size, _, _ in found} | {ALL, 1}


def test_shares_become_instances() -> None:
    found = from_shares(np.asarray([0.01, 0.5, 1.0]), 6.0, 20)
    assert found.sizes.tolist() == [1, 10, 20]
    assert found.weights.tolist() == [2, 2, 2]
    assert found.cut_short.tolist() == [False, False, True]


def test_the_first_interval_brings_the_stock_and_no_event() -> None:
    rows = rows_of(series_from([9, 9, 8, 10]), 99)
    assert rows.before.tolist() == [9, 9, 8]
    assert rows.added.tolist() == [0, 0, 2]
    assert rows.removed.tolist() == [0, 1, 0]
    assert rows_of(series_from([9, 9, 8, 10]), 2).before.tolist() == [9, 8]
    assert len(rows_of(series_from([9]), 99)) == len(rows_of(series_from([]), 99)) == 0


def test_ages_count_from_the_event() -> None:
    rows = rows_of(series_from([9, 9, 8, 8, 8, 10, 10]), 99)
    assert rows.removal_ages().tolist() == [1, 2, 1, 2, 3, 4, 5]
    assert rows.addition_ages().tolist() == [1, 2, 3, 4, 5, 1, 2]
    assert rows_of(series_from([8] * 99), 99).removal_ages()[-1] == OLDEST


def test_events_and_chances_are_counted_by_age_and_weight() -> None:
    seen = look(rows_of(series_from([15, 15, 14, 16, 16]), 99), CAPACITY, math.inf)
    assert seen.removals.since_removal.events.tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert seen.removals.since_removal.exposure.tolist() == [2, 2, 0, 0, 0, 0, 0]
    # No chance of an addition where one was removed, nor where all 16 are there.
    assert seen.additions.since_removal.events.tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert seen.additions.since_removal.exposure.tolist() == [2, 0, 0, 0, 0, 0, 0]
    assert seen.addition_batches.cut_short.tolist() == [True]
    assert (seen.removal_age, seen.addition_age) == (3, 2)
    halved = look(rows_of(series_from([15, 15, 14, 16, 16]), 99), CAPACITY, 1.0)
    assert halved.removal_batches.weights.tolist() == [0.25]
    assert halved.removals.since_removal.exposure.sum() == pytest.approx(1.875)


def test_buckets_are_drawn_towards_the_pooled_rate() -> None:
    tally = Tally(np.asarray([8.0, 0, 0, 0, 0, 0, 2]), np.asarray([10.0, 0, 0, 0, 0, 0, 90]))
    assert tally.pooled() == pytest.approx(0.1)
    rates = tally.rates(10.0)
    assert rates[1] == pytest.approx((8 + 1) / 20)
    assert rates[3] == pytest.approx(0.1)
    assert rates[OLDEST] == pytest.approx((2 + 1) / 100)


def test_two_ages_multiply_and_stay_a_probability() -> None:
    high = Tally(np.asarray([9.0, 0, 0, 0, 0, 0, 1]), np.asarray([10.0, 0, 0, 0, 0, 0, 10]))
    hazard = Tallies(high, high).hazard(1e-9)
    assert hazard.shape == (OLDEST + 1, OLDEST + 1)
    assert hazard.max() == 0.95
    assert hazard[OLDEST, OLDEST] == pytest.approx(0.1 * 0.1 / 0.5)
    nothing = Tally(np.zeros(7), np.zeros(7))
    assert not Tallies(nothing, nothing).hazard(40.0).any()


def test_a_long_history_gives_its_own_rates() -> None:
    # One removal of 2 in every 10 minutes, one addition of 2 four minutes later.
    counts = ([16] * 6 + [14] * 4) * 150
    predictor = HazardPredictor(NOTHING_ELSE, HazardSettings(replayed=0, half_life=1e9))
    forecast = predictor.forecast(ask(counts, num_paths=4000, horizon=60))
    assert forecast.removed.mean() == pytest.approx(0.2, rel=0.2)
    assert set(np.unique(forecast.removed)) == {0, 2}


def test_what_is_old_is_forgotten() -> None:
    wild, calm = [16, 12] * 200, [16] * 400
    predictor = HazardPredictor()
    lately_wild, lately_calm = (
        predictor.forecast(ask(counts)).removed.sum() for counts in (calm + wild, wild + calm)
    )
    assert lately_wild > 10 * lately_calm


def test_the_prior_gives_way() -> None:
    start, later = (
        HazardPredictor().law(ask([CAPACITY] * length)).removal[OLDEST, OLDEST]
        for length in (1, 600)
    )
    assert 0.02 < start < 0.2
    assert later < 0.5 * start


def test_without_history_or_prior_nothing_is_expected() -> None:
    forecast = HazardPredictor(NOTHING_ELSE).forecast(ask([]))
    assert not forecast.removed.any()
    assert not forecast.added.any()


def test_batches_that_took_all_are_drawn_as_all() -> None:
    counts = ([6] * 5 + [0] * 5) * 20 + [6]
    predictor = HazardPredictor(NOTHING_ELSE, HazardSettings(replayed=0))
    law = predictor.law(ask(counts, now=11))
    assert law.removal_sizes.probability_of_all() == pytest.approx(1)
    forecast = predictor.forecast(ask(counts, now=11))
    assert set(np.unique(forecast.removed[:, 0])) == {0, 11}


def test_known_removals_set_the_age_in_the_draw() -> None:
    question = ask(HISTORIES["oscillating"], num_paths=4)
    law = HazardPredictor().law(question)
    due = np.zeros((4, 12), dtype=np.int64)
    due[1] = 1
    removed, added = draw(law, question, due, np.random.default_rng(0))
    before = question.now + np.cumsum(added[1] - removed[1]) - added[1] + removed[1]
    assert (removed[1] >= np.minimum(1, before)).all()
    # Nothing joins in an interval that loses somebody.
    assert not added[1][removed[1] > 0].any()


def test_the_shipped_prior_is_that_of_the_bundled_recordings() -> None:
    assert FILE.read_text(encoding="utf-8") == written(), (
        "run python -m parcae_predictor.prior_maker"
    )


def test_a_recording_can_be_left_out_of_the_prior() -> None:
    whole, part = load_prior(), load_prior(frozenset({"gcp-v100"}))
    assert len(part.removal_shares) == 2 / 3 * len(whole.removal_shares)
    assert part.removals.since_removal.pooled() > whole.removals.since_removal.pooled()


def test_alike_windows_weigh_more() -> None:
    counts = [16] * 20 + [6] * 20 + [16] * 3
    rows = rows_of(series_from(counts), 99)
    weights = similarity(rows, 2, now=16, capacity=CAPACITY)
    assert len(weights) == len(rows) - 1
    assert weights[:18].min() > 20 * weights[24:36].max()
