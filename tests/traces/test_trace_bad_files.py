"""Files that are no trace get one sentence: file, line, what is wrong, what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_api.errors import InputError
from parcae_traces import read_trace


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", ": is empty; give a file that holds a trace"),
        (" \n\n\t\n", ": is empty; give a file that holds a trace"),
        ("hello\n", ", line 1: 'hello' starts no known format of a trace; known are: "),
        ("\n\n<html>\n", ", line 3: '<html>' starts no known format"),
        ("time,operation,node\n0,add,a\n", ", line 1: 'time,operation,node' starts no known"),
        # rows of names
        ("0,add,a\n5,add,b\n4,remove,a\n", ", line 3: time runs backwards, from 0.005 s to"),
        ("0,add,a\n\n0,add,a\n", ", line 3: a is added, but it is there since 0 s; remove"),
        ("0,add,a\n1,remove,b\n", ", line 2: b is removed, but it is not there; add it"),
        ("0,add,a\n0,remove,a\n", ", line 2: instance 1: is removed at 0 s but joined at 0 s"),
        ("0,add,a\n1,evict,a\n", ", line 2: 'evict' is no action; write add or remove"),
        ("0,add,a\n1,remove\n", ", line 2: is no row of time_ms,add|remove,node; correct"),
        ("0,add,a\n1,remove,\n", ", line 2: is no row of time_ms,add|remove,node; correct"),
        ("0,add,a\nx,remove,a\n", ", line 2: 'x' is no time in ms; give a number, 0 or more"),
        ("-5,add,a\n", ", line 1: '-5' is no time in ms; give a number, 0 or more"),
        ("1e300,add,a\n", ", line 1: '1e300' is no time in ms; give a number"),
        # step plots
        ("0,3\n9,-1\n", ", line 2: '-1' is no count of instances; give a whole number"),
        ("0,3\n9,1.5\n", ", line 2: '1.5' is no count of instances; give a whole number"),
        ("0,3\n9,1000000000\n", ", line 2: '1000000000' is no count of instances"),
        ("0,3\n9,3\n8,3\n", ", line 3: is earlier than the row before; sort the rows by time"),
        ("0,3\n9\n", ", line 2: is no row of time,count; correct or remove it"),
        ("0,3\nnow,3\n", ", line 2: 'now' is no time; give a number, 0 or more"),
        # dated counts
        ("2021-12-10, 13:07:45, 80\n2021-12-10, 99:00:00, 1\n", ", line 2: is no row of date"),
        ("2021-12-10, 13:07:45, 80\n2021-12-10, 13:08:45\n", ", line 2: is no row of date"),
        ("2021-12-10, 13:07:45, 80\n2021-12-10, 13:07:44, 1\n", ", line 2: lies before the"),
        ("2021-12-10, 13:07:45, -3\n", ", line 1: '-3' is no count of instances; give"),
        # SkyPilot
        ('{"metadata": {"gap_seconds": 30}, "data": [1, 1\n', ", line 1: is no JSON: "),
        ('{"metadata": {},\n "data": [1]}\n', ", line 2: metadata.gap_seconds is None; make it"),
        ('{"metadata": {"gap_seconds": 0}, "data": [1]}', ", line 1: metadata.gap_seconds is 0"),
        ('{"metadata": 3, "data": [1]}', ", line 1: metadata.gap_seconds is None; make it"),
        ('{"metadata": {"gap_seconds": 30}}', ", line 1: data is no list of counts; give one"),
        ('{"metadata": {"gap_seconds": 30}, "data": []}', ", line 1: data is no list of counts"),
        ('{"metadata": {"gap_seconds": 30}, "data": [1, -1]}', ", line 1: data[1] is -1; make"),
        ('{"metadata": {"gap_seconds": 30}, "data": [true]}', ", line 1: data[0] is True; make"),
        ('{"metadata": {"gap_seconds": 30}, "data": [NaN]}', ", line 1: data[0] is nan; make"),
        ('{"metadata": {"gap_seconds": 30}, "data": [0.5]}', ", line 1: data[0] is 0.5; make"),
        # SpotServe
        ('[0, "add", {"nodes": ["a"]}]\n[1, "add"\n', ", line 2: is no JSON: "),
        ('[0, "add", {"nodes": ["a"]}]\n[1, "add", ["b"]]\n', ", line 2: is none of the lines"),
        ('[0, "add", {"nodes": [1]}]\n', ", line 1: is none of the lines of [time_ms"),
        ('[true, "add", {"nodes": ["a"]}]\n', ", line 1: 'True' is no time in ms; give"),
        ('[0, "add", {"nodes": ["a"]}]\n[9, "drop", {"nodes": ["a"]}]\n', ", line 2: 'drop' is"),
        ('[0, "add", {"nodes": ["a", "a"]}]\n', ", line 1: a is added, but it is there since"),
        ('[0, "add", {"nodes": ["a"]}]\n[0, "DONE", {"nodes": []}]\n', ", line 2: is DONE before"),
        (
            '[0, "add", {"nodes": ["a"]}]\n[9, "DONE", {"nodes": []}]\n[9, "add", {"nodes": []}]',
            ", line 3: comes after DONE; remove it",
        ),
    ],
)
def test_the_complaint_names_file_line_and_remedy(
    tmp_path: Path, content: str, complaint: str
) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_trace(path)
    message = str(raised.value)
    assert message.startswith(f"{path}{complaint}")
    assert "\n" not in message


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.trace"
    path.write_bytes(b"0,add,\xff\n")
    with pytest.raises(InputError, match=r"is no UTF-8 text \(byte 6\); give a trace as text"):
        read_trace(path)
