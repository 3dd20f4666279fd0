"""Foreign formats, told by their content and restated as lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_strategies import QUICK

from parcae_traces import Life, Trace, read_trace
from parcae_traces.formats.counts import lives_of_counts

Read = Callable[..., Trace]

NODE_ROWS = "0,add,a\n0,add,b\n60000,remove,a\n90000,add,a\n"
SPOTSERVE = """\
[0, "add", {"nodes": ["n0", "n1"]}]
[60000, "remove", {"nodes": ["n0", "n1"]}]
[90500, "add", {"nodes": ["n2"]}]
[120000, "DONE", {"nodes": []}]
"""


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_content(content: str, name: str = "some file.csv") -> Trace:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return read_trace(path)

    return read_content


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_node_rows(read: Read, line_end: str) -> None:
    trace = read(NODE_ROWS.replace("\n", line_end))
    assert trace.lives == (Life(1, 0.0, 60.0), Life(2, 0.0), Life(3, 90.0))
    assert (trace.name, trace.capacity, trace.duration_s) == ("some-file", 2, 120.0)
    assert trace.source == "read from some file.csv (rows of time_ms,add|remove,node)"


def test_a_byte_order_mark_is_skipped(read: Read) -> None:
    assert len(read("\ufeff" + NODE_ROWS).lives) == 3


def test_spotserve_lines_end_where_they_say(read: Read) -> None:
    trace = read(SPOTSERVE)
    assert trace.lives == (Life(1, 0.0, 60.0), Life(2, 0.0, 60.0), Life(3, 90.5))
    assert trace.duration_s == 120.0
    endless = read("".join(SPOTSERVE.splitlines(keepends=True)[:-1]))
    assert (endless.lives, endless.duration_s) == (trace.lives, 120.0)


def test_the_newest_of_overlapping_dated_rows_holds(read: Read) -> None:
    """The second poll overrules what the first had foretold, also at its very time."""
    trace = read(
        "2021-12-10, 23:59:00, 3\n2021-12-11, 00:00:00, 3\n2021-12-11, 00:01:00, 3\n"
        "2021-12-11, 00:00:00, 1\n2021-12-11, 00:01:30, 1\n2021-12-11, 00:01:00, 2\n"
    )
    assert trace.counts() == ((0.0, 3), (60.0, 1), (120.0, 2))
    assert (trace.duration_s, trace.notice_s) == (180.0, 30.0)


def test_step_plots_in_seconds_and_in_hours_are_the_same(read: Read) -> None:
    seconds = read("0,0\n36,0\n36,4\n72,4\n72,1\n")
    hours = read("0.000,0\n0.010,0\n0.010,4\n0.020,4\n0.020,1\n")
    assert seconds.counts() == hours.counts() == ((36.0, 4), (72.0, 1))
    assert seconds.lives == hours.lives


def test_a_step_plot_ends_where_its_name_says(read: Read) -> None:
    name = "aws-2020-11-22-15:30-to-2020-11-23-0935.csv"
    assert read("0,8\n", name).duration_s == (18 * 60 + 5) * 60
    assert read("0,8\n99999,7\n", name).duration_s == 100_020.0
    assert read("0,8\n").duration_s == 60.0


def test_skypilot_counts_per_gap(read: Read) -> None:
    document = {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 1, 0], "prices": [1.0]}
    for indent in (None, 2):
        trace = read(json.dumps(document, indent=indent))
        assert trace.counts() == ((300.0, 4), (900.0, 1), (1200.0, 0))
        assert (trace.capacity, trace.duration_s) == (4, 1500.0)


def test_no_instance_at_all_is_a_trace_too(read: Read) -> None:
    trace = read('{"metadata": {"gap_seconds": 30}, "data": [0, 0]}')
    assert (trace.lives, trace.capacity) == ((), 1)


@QUICK
@given(
    st.lists(st.tuples(st.integers(0, 50).map(float), st.integers(0, 9))).map(
        lambda steps: sorted(steps, key=lambda step: step[0])
    )
)
def test_counts_become_instances_with_no_needless_move(steps: list[tuple[float, int]]) -> None:
    lives = lives_of_counts(steps)
    trace = Trace(name="x", source="x", duration_s=99.0, capacity=9, lives=lives)
    before = 0
    for time_s, count in dict(steps).items():
        assert trace.count_at(time_s) == count
        moments = [moment for moment in trace.moments() if moment.time_s == time_s]
        moved = sum(len(moment.joined) + len(moment.removed) for moment in moments)
        assert moved == abs(count - before)
        before = count


def test_who_leaves_is_as_old_as_the_others_on_average() -> None:
    """With 10 always there and one replaced each second: neither the oldest nor the newest."""
    steps = [(float(second), 10 - second % 2) for second in range(2000)]
    lives = [life for life in lives_of_counts(steps) if life.removed_s is not None]
    ages = sorted(life.removed_s - life.joined_s for life in lives if life.removed_s is not None)
    # Geometric with mean 10 departures of 2 s: the median is near ln 2 of the mean.
    assert 9 <= ages[len(ages) // 2] <= 18
