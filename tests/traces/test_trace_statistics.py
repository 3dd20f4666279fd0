"""The figures of a trace, worked out by hand on a small one."""

from __future__ import annotations

import math

from parcae_traces import Life, Trace, find_trace, statistics_of

TRACE = Trace(
    name="hand",
    source="made up",
    duration_s=600.0,
    capacity=4,
    lives=(
        Life(1, 0.0, 100.0),
        Life(2, 0.0, 100.0),
        Life(3, 0.0),
        Life(4, 90.0, 220.0),
        Life(5, 130.0),
        Life(6, 400.0, 500.0),
    ),
)


def test_a_small_trace_by_hand() -> None:
    figures = statistics_of(TRACE)
    lived_s = 100 + 100 + 600 + 130 + 470 + 100
    assert figures.mean_count == lived_s / 600
    assert (figures.min_count, figures.max_count) == (2, 4)
    assert (figures.num_added, figures.num_removed) == (3, 4)
    assert (figures.num_batches, figures.mean_batch, figures.max_batch) == (3, 4 / 3, 2)
    # At 90 and 100 s the second minute is busy, then the third, fourth, seventh and ninth.
    assert (figures.num_moments, figures.num_eventful_minutes) == (6, 5)
    assert figures.mean_life_s == lived_s / 4
    assert figures.share_followed_soon == 1 / 3  # 100 then 220 s: just soon; 500 s is not


def test_without_removals_life_has_no_end() -> None:
    figures = statistics_of(
        Trace(name="x", source="x", duration_s=60.0, capacity=1, lives=(Life(1, 0.0),))
    )
    assert math.isinf(figures.mean_life_s)
    assert (figures.mean_batch, figures.max_batch, figures.share_followed_soon) == (0.0, 0, 0.0)
    assert "no removals" in figures.line()


def test_a_late_first_join_counts_from_zero() -> None:
    assert statistics_of(find_trace("g4dn")).min_count == 0


def test_the_line_says_it_all() -> None:
    assert statistics_of(find_trace("p3")).line() == (
        "11.38 h, capacity 32, count 24.0 (10 to 32), 159 added, 167 removed in batches of 2.11 "
        "(at most 6), 162 eventful minutes, mean life 98 min, 46% of batches followed within 2 min"
    )
