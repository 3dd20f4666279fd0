"""Invented traces obey their market."""

from __future__ import annotations

from statistics import fmean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_strategies import QUICK

from parcae_traces import Market, generate, statistics_of

DAYS = Market(capacity=16, duration_s=40 * 3600.0, mean_removal_batch=2.5)


def test_the_seed_decides() -> None:
    assert generate(Market(), seed=3) == generate(Market(), seed=3)
    assert generate(Market(), seed=3).lives != generate(Market(), seed=4).lives


@QUICK
@given(
    st.integers(1, 12).flatmap(
        lambda capacity: st.tuples(
            st.just(capacity), st.integers(0, capacity), st.integers(0, capacity)
        )
    ),
    st.integers(0, 9),
)
def test_counts_stay_between_minimum_and_capacity(sizes: tuple[int, int, int], seed: int) -> None:
    capacity, *others = sizes
    minimum, initial = sorted(others)
    market = Market(
        capacity=capacity,
        initial=initial,
        minimum=minimum,
        removal_batches_per_hour=30,
        join_batches_per_hour=30,
    )
    trace = generate(market, seed)
    figures = statistics_of(trace)
    assert trace.count_at(0) == initial
    assert minimum <= figures.min_count <= figures.max_count <= capacity
    assert all(moment.time_s % 60 == 0 for moment in trace.moments())


def test_removals_come_in_batches_as_often_as_asked() -> None:
    figures = statistics_of(generate(DAYS, seed=1))
    assert 0.85 * 8 < figures.num_batches / 40 < 1.15 * 8
    assert 2.0 < figures.mean_batch < 2.8  # a little below 2.5, as batches end with the stock
    assert figures.max_batch >= 5


def test_the_young_are_taken_more_often() -> None:
    def median_life_s(young_hazard: float) -> float:
        market = Market(
            capacity=16, duration_s=40 * 3600.0, join_batches_per_hour=60, young_hazard=young_hazard
        )
        lives = generate(market, seed=2).lives
        return median(
            life.removed_s - life.joined_s for life in lives if life.removed_s is not None
        )

    assert median_life_s(8.0) < 0.7 * median_life_s(1.0)


def test_a_share_of_the_removals_is_unnoticed() -> None:
    market = Market(capacity=16, duration_s=40 * 3600.0, unnoticed_share=0.5)
    removed = [life for life in generate(market).lives if life.removed_s is not None]
    assert {life.notice_s for life in removed} == {0.0, None}
    assert 0.4 < fmean(life.notice_s == 0.0 for life in removed) < 0.6


@pytest.mark.parametrize(
    "wrong",
    [{"capacity": 0}, {"initial": 9}, {"minimum": 9}, {"interval_s": 0}, {"young_hazard": 0.5}],
)
def test_a_market_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"needs? |must "):
        Market(**wrong)  # type: ignore[arg-type]
