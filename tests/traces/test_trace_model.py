"""The model: what it refuses, and how it orders what happens."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from trace_strategies import QUICK, traces

from parcae_traces import Change, Event, Life, Roster, Trace

TRACE = Trace(
    name="three",
    source="made up",
    duration_s=100.0,
    capacity=2,
    lives=(Life(1, 0.0, 30.0), Life(2, 0.0, 60.0, notice_s=0.0), Life(3, 30.0)),
)


@pytest.mark.parametrize(
    "life",
    [
        (-1, 0.0),
        (1, -1.0),
        (1, math.nan),
        (1, math.inf),
        (1, 5.0, 5.0),
        (1, 5.0, 4.0),
        (1, 5.0, math.inf),
        (1, 0.0, 1.0, -1.0),
        (1, 0.0, None, 30.0),
    ],
)
def test_a_life_that_cannot_be_is_refused(life: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="instance"):
        Life(*life)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": "a b"}, "no name"),
        ({"source": "two\nlines"}, "one line"),
        ({"source": ""}, "one line"),
        ({"duration_s": 0.0}, "no duration"),
        ({"duration_s": math.nan}, "no duration"),
        ({"duration_s": 60.0}, "ends at 60 s"),
        ({"notice_s": -1.0}, "no notice"),
        ({"capacity": 1}, "exceed its capacity of 1"),
        ({"capacity": 100_000}, "beyond all reason"),
        ({"lives": TRACE.lives[::-1]}, "ordered"),
        ({"lives": (Life(1, 0.0), Life(1, 5.0))}, "same number"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(TRACE, **change)  # type: ignore[arg-type]


def test_a_freed_place_is_taken_at_the_same_moment() -> None:
    """Instance 1 leaves at 30 s and 3 joins then: never more than 2 at once."""
    assert TRACE.peak() == 2
    assert TRACE.counts() == ((0.0, 2), (30.0, 2), (60.0, 1))


def test_events_come_in_order_with_removals_first_and_notices_filled_in() -> None:
    assert TRACE.events() == (
        Event(0.0, Change.JOIN, 1),
        Event(0.0, Change.JOIN, 2),
        Event(30.0, Change.REMOVAL, 1, notice_s=120.0),
        Event(30.0, Change.JOIN, 3),
        Event(60.0, Change.REMOVAL, 2, notice_s=0.0),
    )


@QUICK
@given(traces())
def test_the_count_of_a_moment_includes_all_of_it(trace: Trace) -> None:
    for time_s, count in trace.counts():
        assert count == trace.count_at(time_s)
        before = trace.count_at(math.nextafter(time_s, -1))
        moment = next(m for m in trace.moments() if m.time_s == time_s)
        assert count - before == len(moment.joined) - len(moment.removed)


@QUICK
@given(traces())
def test_events_fed_back_give_the_same_lives(trace: Trace) -> None:
    roster = Roster()
    for event in trace.events():
        if event.change is Change.JOIN:
            roster.join(event.time_s, event.instance, event.instance)
        else:
            roster.remove(event.time_s, event.instance)
    assert [replace(life, notice_s=None) for life in trace.lives] == list(roster.lives())


def test_a_roster_refuses_what_cannot_happen() -> None:
    roster = Roster()
    roster.join(10.0, "a")
    with pytest.raises(ValueError, match="a is added, but it is there since 10 s"):
        roster.join(20.0, "a")
    with pytest.raises(ValueError, match="b is removed, but it is not there"):
        roster.remove(20.0, "b")
    with pytest.raises(ValueError, match="time runs backwards, from 20 s to 15 s"):
        roster.join(15.0, "c")
    roster.remove(30.0, "a")
    with pytest.raises(ValueError, match="give whoever returns a new number"):
        roster.join(40.0, "a", instance=1)


def test_a_name_that_returns_is_a_new_instance() -> None:
    roster = Roster()
    roster.join(0.0, "a")
    roster.remove(10.0, "a")
    roster.join(20.0, "a")
    assert roster.lives() == (Life(1, 0.0, 10.0), Life(2, 20.0))
