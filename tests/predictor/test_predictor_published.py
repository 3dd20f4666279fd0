"""The published predictor: its rules one by one, and its check values on the p3 recording."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from predictor_helpers import QUICK

from parcae_predictor.batches import Floats
from parcae_predictor.drift import drift_path, statsmodels_path
from parcae_predictor.published import (
    WINDOW,
    PublishedForecaster,
    cut_at_turn,
    without_outliers,
)
from parcae_traces import Series, find_trace, series_of


@pytest.fixture(scope="module")
def p3() -> Series:
    return series_of(find_trace("p3"))


def before(p3: Series, interval: int) -> tuple[list[int], list[int]]:
    seen = p3.window(0, interval)
    return PublishedForecaster().forecast(seen.available, seen.removed)


def at(*steps: int) -> list[int]:
    """One instance at each of these steps, counted from 1."""
    return [int(step in steps) for step in range(1, WINDOW + 1)]


@pytest.mark.parametrize(
    ("interval", "last", "added", "removed"),
    [
        (340, [32] * 10 + [29, 29], at(), at(2, 6, 9)),
        (366, [21, 21, 20] + [21] * 6 + [23] * 3, at(3, 9), at()),
        (349, None, at(), at()),
    ],
)
def test_the_published_check_values(
    p3: Series, interval: int, last: list[int] | None, added: list[int], removed: list[int]
) -> None:
    if last is not None:
        assert list(p3.available[interval - WINDOW : interval]) == last
    assert before(p3, interval) == (added, removed)


def test_the_closed_form_and_statsmodels_round_to_the_same_paths(p3: Series) -> None:
    for end in range(WINDOW, len(p3), 23):
        window = cut_at_turn(without_outliers(list(p3.available[end - WINDOW : end])))
        counts = np.asarray(window, dtype=np.float64)
        ours, theirs = (fit(counts, WINDOW) for fit in (drift_path, statsmodels_path))
        assert np.rint(ours).tolist() == np.rint(theirs).tolist(), window


@pytest.mark.parametrize("length", [0, 1, 12])
def test_up_to_12_counts_no_change_is_expected(length: int) -> None:
    counts = list(range(8, 8 + length))
    assert PublishedForecaster().forecast(counts, [0] * length) == (at(), at())


@pytest.mark.parametrize(
    ("window", "level"),
    [
        ([5, 4, 5, 5], [5, 5, 5, 5]),
        ([5, 4, 3, 5], [5, 5, 5, 5]),
        ([5, 7, 3, 9, 5, 6], [5, 5, 5, 5, 5, 6]),
        ([5, 4, 3, 2, 1, 5], [5, 4, 3, 2, 1, 5]),
        ([5, 4, 5, 3, 5], [5, 5, 5, 5, 5]),
        ([5, 4, 6, 5, 4], [5, 5, 5, 5, 4]),
        ([5, 4], [5, 4]),
    ],
)
def test_outliers(window: list[int], level: list[int]) -> None:
    assert without_outliers(window) == level


@pytest.mark.parametrize(
    ("window", "flat"),
    [
        ([5, 3, 4, 3, 4], [3, 3, 3, 3, 4]),
        ([5, 8, 6], [8, 8, 6]),
        ([5, 3, 9, 4], [3, 3, 9, 4]),
        ([3, 4, 5], [3, 4, 5]),
        ([3, 3], [3, 3]),
    ],
)
def test_turning_point(window: list[int], flat: list[int]) -> None:
    assert cut_at_turn(window) == flat


@QUICK
@given(st.lists(st.integers(0, 40), min_size=WINDOW, max_size=WINDOW))
def test_the_last_count_stays(window: list[int]) -> None:
    assert cut_at_turn(without_outliers(window))[-1] == window[-1]


def test_damping_is_kept_and_only_a_mid_rise_lifts_it() -> None:
    forecaster = PublishedForecaster()
    forecaster.observe([10] * 6 + [14] * 6)
    assert forecaster.up == 1
    forecaster.observe([10] * 6 + [20] * 6)
    assert (forecaster.up, forecaster.down) == (0.5, 1)
    forecaster.observe([20] * 12)
    forecaster.observe([10] * 6 + [13] * 6)
    assert forecaster.up == 0.5
    forecaster.observe([10] * 6 + [15] * 6)
    assert forecaster.up == 0.75
    forecaster.observe([20] * 6 + [11] * 6)
    assert (forecaster.up, forecaster.down) == (0.75, 0.75)
    forecaster.observe([30] * 6 + [11] * 6)
    assert forecaster.down == 0.5


def rising(counts: Floats, steps: int) -> Floats:
    return counts[-1] + 2.0 * np.arange(1, steps + 1)


def level(counts: Floats, steps: int) -> Floats:
    return np.full(steps, counts[-1])


def test_a_path_stays_near_its_first_value_and_within_bounds() -> None:
    wiggle = [20, 21] * 6 + [22]
    added, removed = PublishedForecaster(fit=rising).forecast(wiggle, [0] * 13)
    # 24, 26, then clamped to 27.
    assert added == [2, 2, 1] + [0] * 9
    assert removed == at()
    added, _ = PublishedForecaster(upper=23, fit=rising).forecast(wiggle, [0] * 13)
    assert added == [1] + [0] * 11
    # 22 lies above this upper bound: the path falls to it.
    _, removed = PublishedForecaster(lower=0, upper=20, fit=rising).forecast(wiggle, [0] * 13)
    assert removed == [2] + [0] * 11


def test_halves_go_to_the_even_neighbour() -> None:
    forecaster = PublishedForecaster(fit=rising)
    forecaster.up = 0.75
    # 22 + 1.5 = 23.5 -> 24; 24 + 1.5 -> 26 (25.5 is nearer to even 26); 26 + 0.75 -> 27.
    added, _ = forecaster.forecast([20, 21] * 6 + [22], [0] * 13)
    assert added == [2, 2, 1] + [0] * 9


def test_random_removals_need_a_level_path_after_an_uneven_window() -> None:
    uneven = [20, 20] + [22, 23] * 5 + [22]
    removed = [3] * 13
    rng = np.random.default_rng(0)
    draws = PublishedForecaster(fit=level).paths(uneven, removed, rng, num_paths=4000)[1]
    window = cut_at_turn(without_outliers(uneven[-WINDOW:]))
    rate = min(np.std(window), np.var(window), 3.0)
    assert rate > 0
    assert draws.mean() == pytest.approx(rate, rel=0.05)
    for counts, fit in ((uneven, rising), ([22] * 13, level)):
        forecaster = PublishedForecaster(fit=fit)
        assert not forecaster.paths(counts, removed, rng, num_paths=50)[1].any()
    assert PublishedForecaster(fit=level).forecast(uneven, removed)[1] == at()
    none_removed = PublishedForecaster(fit=level).paths(uneven, [0] * 13, rng, num_paths=50)
    assert not none_removed[1].any()


def test_random_removals_are_damped_like_others() -> None:
    uneven = [20, 20] + [22, 23] * 5 + [22]
    window = cut_at_turn(without_outliers(uneven[-WINDOW:]))
    rate = min(np.std(window), np.var(window), 3.0)
    extra = np.random.default_rng(3).poisson(rate, (1, WINDOW))[0]
    forecaster = PublishedForecaster(fit=level)
    forecaster.down = 0.5
    drawn = forecaster.forecast(uneven, [3] * 13, np.random.default_rng(3))[1]
    count, expected = 22, []
    for more in extra.tolist():
        after = round(count - 0.5 * more)
        expected.append(count - after)
        count = after
    assert drawn == expected
    # Single ones, halved at an even count, are rounded away: an oddity of the published rules.
    assert sum(drawn) < extra.sum()


def falling(counts: Floats, steps: int) -> Floats:
    return counts[-1] - 2.0 * np.arange(1, steps + 1)


def test_below_the_floor_a_change_is_left_out_and_later_ones_stay() -> None:
    wiggle = [16, 17] * 6 + [16]
    plain = PublishedForecaster(fit=falling).forecast(wiggle, [0] * 13)
    assert plain[1] == [2, 2, 1] + [0] * 9
    # Counts 14, 12, 11 with their change once more: 12, 10, 10.
    floored = PublishedForecaster(floor=12, fit=falling).forecast(wiggle, [0] * 13)
    assert floored[1] == [2, 0, 0] + [0] * 9


@QUICK
@given(
    st.lists(st.integers(0, 99_999), min_size=3, max_size=WINDOW),
    st.integers(1, 30),
)
def test_the_closed_form_is_finite_on_anything(counts: list[int], steps: int) -> None:
    path = drift_path(np.asarray(counts, dtype=np.float64), steps)
    assert path.shape == (steps,)
    assert np.isfinite(path).all()


def test_a_straight_line_goes_on() -> None:
    line = np.arange(10.0, 22.0)
    for fit in (drift_path, statsmodels_path):
        assert fit(line, 3) == pytest.approx([22, 23, 24], abs=0.02)


@pytest.mark.parametrize(
    "counts",
    [[7.0] * 12, [0.0, 32.0] * 6, [0.0] * 11 + [99_999.0], [1.0, 2.0, 4.0], [5.0, 5.0]],
)
def test_statsmodels_survives_wild_series_without_a_word(counts: list[float]) -> None:
    assert np.isfinite(statsmodels_path(np.asarray(counts), WINDOW)).all()
