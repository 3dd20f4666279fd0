"""The project's own format: what is written reads back, and reads well."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_strategies import QUICK, traces

from parcae_api.errors import InputError
from parcae_traces import Life, Trace, read_trace, save_compact, write_compact

TEXT = """\
# parcae-trace 1
# name: small
# source: made up
# capacity: 6
# duration_s: 600
# notice_s: 120
0 +1..3 +5 +6
60 -2 -3@30 -6@0 +8 +9
90.5 -1
"""

TRACE = Trace(
    name="small",
    source="made up",
    duration_s=600.0,
    capacity=6,
    lives=(
        Life(1, 0.0, 90.5),
        Life(2, 0.0, 60.0),
        Life(3, 0.0, 60.0, notice_s=30.0),
        Life(5, 0.0),
        Life(6, 0.0, 60.0, notice_s=0.0),
        Life(8, 60.0),
        Life(9, 60.0),
    ),
)


def parse(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "t.trace"
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def test_it_is_written_as_documented_and_reads_back(tmp_path: Path) -> None:
    assert write_compact(TRACE) == TEXT
    assert parse(tmp_path, TEXT) == TRACE


@QUICK
@given(traces(times_s=st.floats(0, 1e9)))
def test_any_trace_reads_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    path = tmp_path_factory.getbasetemp() / "round.trace"
    save_compact(trace, path)
    assert read_trace(path) == trace


def test_blank_lines_comments_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    loose = TEXT.replace("60 -2", "\n# a remark\n# name: no header any more\n\n60   -2")
    assert parse(tmp_path, loose.replace("\n", "\r\n")) == TRACE


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("trace 1", "trace 2", "line 1: is of another version; this one reads '# parcae-trace 1'"),
        ("# capacity: 6\n", "", "line 6: the header above has no '# capacity: ...'; add it"),
        ("capacity: 6", "name: 6", "line 4: says name a second time; remove one"),
        ("capacity: 6", "capacity: six", "line 1: 'six' is no capacity; give a whole number"),
        ("600", "soon", "line 1: 'soon' is no duration_s; give a number"),
        ("small", "a/b", "line 1: 'a/b' is no name of a trace"),
        ("60 -2", "60s -2", "line 8: '60s' is no time in seconds; give a number"),
        ("60 -2", "nan -2", "line 8: 'nan' is no time in seconds; give a number"),
        ("90.5 -1", "90.5", "line 9: has a time and no change; add +7 or -7, or remove it"),
        ("90.5 -1", "90.5 1", "line 9: '1' is no change; write +7, +1..18, -7 or -7@30"),
        ("90.5 -1", "30 -1", "line 9: time runs backwards, from 60 s to 30 s; sort the rows"),
        ("90.5 -1", "600 -1", "line 9: lies at or after duration_s; remove it, or let"),
        ("90.5 -1", "90.5 -2", "line 9: 2 is removed, but it is not there; add it before"),
        ("90.5 -1", "90.5 +5", "line 9: 5 is added, but it is there since 0 s; remove this"),
        ("90.5 -1", "90.5 +2", "line 9: 2 was there before; give whoever returns a new"),
        ("90.5 -1", "90.5 +11..13", "line 9: brings 7 instances at once; raise the capacity"),
        ("90.5 -1", "90.5 +9..1", "line 9: +9..1 is no run of at most 6 instances"),
        ("90.5 -1", "90.5 +10..999999999", "line 9: +10..999999999 is no run of at most 6"),
        ("-3@30", "-3@x", "line 8: 'x' is no notice in seconds; give a number"),
        ("90.5 -1", "60 -8", "line 9: instance 8: is removed at 60 s but joined at 60 s"),
    ],
)
def test_a_slip_is_named_with_its_line(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    assert TEXT.count(old) == 1 or old == "600"
    with pytest.raises(InputError) as raised:
        parse(tmp_path, TEXT.replace(old, new))
    message = str(raised.value)
    assert message.startswith(f"{tmp_path / 't.trace'}, {complaint}")
    assert "\n" not in message


def test_a_file_that_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        save_compact(TRACE, tmp_path / "nowhere" / "t.trace")
