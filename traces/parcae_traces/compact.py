"""The project's own format of a trace: text for people and for ``diff``.

::

    # parcae-trace 1
    # name: p3
    # source: 32 AWS p3.2xlarge spot instances, ...
    # capacity: 32
    # duration_s: 40980
    # notice_s: 120
    0 +1..18
    60 +19
    2040 -19
    2220 -4 -7@30 +33

One line per moment: its time in seconds, then who leaves and who joins. ``+1..18`` is a run of
joins; ``-7@30`` is a removal with 30 s of notice, ``@0`` one without; removals that say nothing
have ``notice_s``. A number is used once: whoever returns has a new one. Blank lines and further
lines that start with ``#`` are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from parcae_api.errors import InputError
from parcae_traces.formats.text import Text, number, whole
from parcae_traces.model import Life, Moment, Trace
from parcae_traces.roster import Roster

FIRST_LINE = "# parcae-trace 1"
SUFFIX = ".trace"

_KEYS = ("name", "source", "capacity", "duration_s", "notice_s")
_HEADER = re.compile(r"#\s*(\w+)\s*:\s*(.*)")
_JOIN = re.compile(r"\+(\d+)(?:\.\.(\d+))?")
_REMOVAL = re.compile(r"-(\d+)(?:@(.+))?")


def write_compact(trace: Trace) -> str:
    """The whole text of the file, with a line feed at its end."""
    header = (
        FIRST_LINE,
        f"# name: {trace.name}",
        f"# source: {trace.source}",
        f"# capacity: {trace.capacity}",
        f"# duration_s: {_written(trace.duration_s)}",
        f"# notice_s: {_written(trace.notice_s)}",
    )
    return "\n".join([*header, *map(_line, trace.moments())]) + "\n"


def save_compact(trace: Trace, path: Path) -> None:
    """Write the file.

    Raises:
        InputError: it cannot be written.
    """
    try:
        path.write_text(write_compact(trace), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


def is_compact(first_line: str) -> bool:
    """Whether a file with this first line is in our format, of whatever version."""
    return first_line.startswith("# parcae-trace")


def parse_compact(text: Text) -> Trace:
    """Read what :func:`write_compact` wrote, or a person.

    Raises:
        InputError: file, line, what is wrong, what to do.
    """
    if (first := text.rows[0]).content != FIRST_LINE:
        text.fail(first.number, f"is of another version; this one reads {FIRST_LINE!r}")
    empty = _header(text)
    roster = Roster()
    for row in text.rows:
        if not row.content.startswith("#"):
            with text.at(row.number):
                _read_moment(row.content, roster, empty)
    return replace(empty, lives=roster.lives())


def _line(moment: Moment) -> str:
    removals = [
        f"-{life.instance}" + ("" if life.notice_s is None else f"@{_written(life.notice_s)}")
        for life in moment.removed
    ]
    return " ".join([_written(moment.time_s), *removals, *_runs(moment.joined)])


def _runs(lives: tuple[Life, ...]) -> Iterator[str]:
    """Joins in order of number; three or more in a row are written as one run."""
    numbers = [life.instance for life in lives]
    while numbers:
        length = 1
        while length < len(numbers) and numbers[length] == numbers[0] + length:
            length += 1
        if length >= 3:
            yield f"+{numbers[0]}..{numbers[length - 1]}"
        else:
            yield from (f"+{instance}" for instance in numbers[:length])
        del numbers[:length]


def _written(value_s: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value_s)).removesuffix(".0")


def _header(text: Text) -> Trace:
    """The trace that the lines above the first moment describe, still without lives."""
    values: dict[str, str] = {}
    line = 1
    for row in text.rows:
        line = row.number
        if not row.content.startswith("#"):
            break
        if (match := _HEADER.fullmatch(row.content)) is not None and match[1] in _KEYS:
            if match[1] in values:
                text.fail(line, f"says {match[1]} a second time; remove one of the two")
            values[match[1]] = match[2]
    for key in _KEYS:
        if key not in values:
            text.fail(line, f"the header above has no '# {key}: ...'; add it")
    with text.at(text.rows[0].number):
        return Trace(
            name=values["name"],
            source=" ".join(values["source"].split()),
            duration_s=number(values["duration_s"], "duration_s"),
            capacity=whole(values["capacity"], "capacity"),
            lives=(),
            notice_s=number(values["notice_s"], "notice_s"),
        )


def _read_moment(line: str, roster: Roster, header: Trace) -> None:
    time, *changes = line.split()
    time_s = number(time, "time in seconds")
    if time_s >= header.duration_s:
        raise ValueError("lies at or after duration_s; remove it, or let the trace last longer")
    if not changes:
        raise ValueError("has a time and no change; add +7 or -7, or remove it")
    for change in changes:
        _apply(change, time_s, roster, header.capacity)
    if len(roster.present) > header.capacity:
        raise ValueError(
            f"brings {len(roster.present)} instances at once; raise the capacity of "
            f"{header.capacity}, or remove some"
        )


def _apply(change: str, time_s: float, roster: Roster, capacity: int) -> None:
    if match := _JOIN.fullmatch(change):
        first, last = int(match[1]), int(match[2] or match[1])
        # Checked first, so that a slip of the pen cannot make a thousand million instances.
        if not 0 <= last - first < capacity:
            raise ValueError(f"{change} is no run of at most {capacity} instances; shorten it")
        for instance in range(first, last + 1):
            roster.join(time_s, instance, instance)
    elif match := _REMOVAL.fullmatch(change):
        notice_s = None if match[2] is None else number(match[2], "notice in seconds")
        roster.remove(time_s, int(match[1]), notice_s)
    else:
        raise ValueError(f"{change!r} is no change; write +7, +1..18, -7 or -7@30")
