"""Naming a part of a trace, and cutting it out."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from trace_strategies import QUICK, traces

from parcae_api.errors import InputError
from parcae_traces import Life, Segment, Trace, cut, find_trace, parse_segment, series_of


def test_a_segment_is_a_published_name_or_hours() -> None:
    assert parse_segment("HADP") == Segment("hadp", 19800.0, 23400.0)
    assert parse_segment("1.5-2.5") == Segment("1.5-2.5h", 5400.0, 9000.0)
    assert parse_segment("0-1h").end_s == 3600.0


@pytest.mark.parametrize("text", ["", "hapd", "1.5", "1-", "-1-2", "1:30-2:30", "1,5-2,5"])
def test_an_unknown_segment_is_refused_with_what_is_known(text: str) -> None:
    with pytest.raises(InputError, match=r"is unknown; give hadp, hasp, ladp, lasp, or start"):
        parse_segment(text)


@pytest.mark.parametrize("text", ["2-1", "1-1", "0-0.0000001"])
def test_a_segment_that_ends_before_it_starts_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="ends before it starts"):
        parse_segment(text)


def test_a_segment_beyond_the_trace_is_refused() -> None:
    with pytest.raises(InputError, match=r"ends at hour 12, but p3 lasts 11\.38 hours"):
        cut(find_trace("p3"), parse_segment("11-12"))


def test_who_is_there_at_the_start_joins_at_0_and_who_just_left_does_not() -> None:
    trace = Trace(
        name="x",
        source="made up",
        duration_s=100.0,
        capacity=4,
        lives=(
            Life(1, 0.0, 10.0),  # gone by the start
            Life(2, 0.0, 20.0, notice_s=5.0),
            Life(3, 10.0),  # joins with the start
            Life(4, 15.0, 30.0),  # its removal is the end's, and stays outside
            Life(5, 30.0),
        ),
    )
    part = cut(trace, Segment("mid", 10.0, 30.0))
    assert part.lives == (Life(2, 0.0, 10.0, notice_s=5.0), Life(3, 0.0), Life(4, 5.0))
    assert (part.name, part.duration_s, part.capacity) == ("x-mid", 20.0, 4)
    assert part.source.startswith("made up; hours ")


@QUICK
@given(traces(), st.integers(0, 19), st.integers(1, 20))
def test_a_cut_counts_like_the_whole(trace: Trace, first: int, length: int) -> None:
    """Minutes of the cut are the whole's, only that the stock counts as added in the first."""
    segment = Segment("part", first * 30.0, (first + length) * 30.0)
    assume(segment.end_s <= trace.duration_s)
    part = series_of(cut(trace, segment), 30.0)
    window = series_of(trace, 30.0).window(first, first + length)
    assert part.available == window.available
    assert part.added[1:] == window.added[1:]
    assert part.removed[1:] == window.removed[1:]


def test_what_rounding_moves_to_the_end_is_outside() -> None:
    trace = Trace("x", "made up", 2.0, 2, (Life(1, 0.5, 1.0), Life(2, 1.0)))
    part = cut(trace, Segment("any", 1e-5, 1.0 + 1e-5))
    assert part.lives == (Life(1, 0.5),)


@QUICK
@given(traces(times_s=st.floats(0, 1e5)), st.floats(0, 1e5), st.floats(0.01, 1e5))
def test_any_cut_is_a_trace(trace: Trace, start_s: float, length_s: float) -> None:
    segment = Segment("any", start_s, start_s + length_s)
    assume(segment.end_s <= trace.duration_s)
    part = cut(trace, segment)
    assert {life.instance for life in part.lives} <= {life.instance for life in trace.lives}
