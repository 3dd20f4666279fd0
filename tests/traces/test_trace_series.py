"""Counting per interval, held to the published simulation's own numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from trace_strategies import QUICK, traces

from parcae_traces import PUBLISHED, Life, Series, Trace, find_trace, series_of


@pytest.fixture(scope="module")
def p3() -> Series:
    return series_of(find_trace("p3"))


def test_p3_has_the_published_length_and_no_minute_of_both_kinds(p3: Series) -> None:
    assert len(p3) == 683
    assert not any(a and r for a, r in zip(p3.added, p3.removed, strict=True))
    assert p3.added[0] == p3.available[0] == 18


@pytest.mark.parametrize(
    ("segment", "first", "stop", "before", "counts", "added", "removed", "eventful"),
    [
        ("hadp", 330, 390, 32, (32, 29, 20, 32), 16, 19, 16),
        ("hasp", 90, 150, 26, (27, 23, 23, 32), 8, 11, 11),
        ("ladp", 480, 540, 18, (18, 17, 11, 24), 17, 18, 20),
        ("lasp", 600, 660, 18, (18, 14, 14, 18), 0, 4, 3),
    ],
)
def test_the_published_segments(
    p3: Series,
    segment: str,
    first: int,
    stop: int,
    before: int,
    counts: tuple[int, int, int, int],
    added: int,
    removed: int,
    eventful: int,
) -> None:
    span = PUBLISHED[segment]
    assert (span.start_s / 60, span.end_s / 60) == (first, stop)
    window = p3.window(first, stop)
    seen = window.available
    assert p3.available[first - 1] == before
    assert (seen[0], seen[-1], min(seen), max(seen)) == counts
    assert (sum(window.added), sum(window.removed)) == (added, removed)
    assert window.num_eventful() == eventful


def test_an_interval_holds_its_start_and_not_its_end() -> None:
    trace = Trace(
        name="x",
        source="made up",
        duration_s=130.0,
        capacity=3,
        lives=(Life(1, 0.0, 60.0), Life(2, 59.999), Life(3, 61.0, 62.0)),
    )
    assert series_of(trace) == Series(60.0, (2, 1, 1), (2, 1, 0), (0, 2, 0))


@QUICK
@given(traces())
def test_each_interval_ends_with_the_count_of_its_last_instant(trace: Trace) -> None:
    series = series_of(trace, 45.0)
    for index, available in enumerate(series.available):
        assert available == trace.count_at((index + 1) * 45.0 - 1e-6)


def test_an_interval_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="no length"):
        series_of(find_trace("p3-lasp"), 0.0)
