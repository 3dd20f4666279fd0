"""``time,count``: the points of Bamboo's step plots.

A step is two rows of the same time, of which the later counts. Nothing in a file tells the unit
of its times, but the published files come in pairs (``x.csv`` and ``x_scaled.csv``) that show it:
times with a decimal point are hours, whole ones are seconds. The recording ends where its name
says (``...-2020-11-20-1930-to-2020-11-21-2200...``), as a plot goes on flat after its last step;
else, or if that is earlier, with the minute of its last row.
"""

from __future__ import annotations

import re
from datetime import datetime

from parcae_traces.formats.counts import lives_of_counts
from parcae_traces.formats.recorded import recorded
from parcae_traces.formats.text import Text, end_of_minute, number, whole
from parcae_traces.model import Trace, to_millisecond

FORMAT = "rows of time,count"

_ROW = re.compile(r"([^,]+),\s*([^,]+)")
_FIRST = re.compile(r"\d+(\.\d+)?\s*,\s*\d+")
_SPAN = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d):?(\d\d)-to-(\d{4}-\d\d-\d\d)-(\d\d):?(\d\d)")


def is_step_plot(first_line: str) -> bool:
    """Whether a file with this first line is in this format."""
    return _FIRST.fullmatch(first_line) is not None


def parse_step_plot(text: Text) -> Trace:
    """Read the points; the capacity is the most instances at once.

    Raises:
        InputError: file, line, what is wrong, what to do.
    """
    unit_s = 3600.0 if any("." in row.content for row in text.rows) else 1.0
    counts: list[tuple[float, int]] = []
    for row in text.rows:
        with text.at(row.number):
            if (match := _ROW.fullmatch(row.content)) is None:
                raise ValueError("is no row of time,count; correct or remove it")
            time_s = to_millisecond(number(match[1], "time") * unit_s)
            if counts and time_s < counts[-1][0]:
                raise ValueError("is earlier than the row before; sort the rows by time")
            counts.append((time_s, whole(match[2], "count of instances")))
    duration_s = max(end_of_minute(counts[-1][0]), _named_span_s(text.path.name))
    return recorded(text, FORMAT, lives_of_counts(counts), duration_s)


def _named_span_s(file_name: str) -> float:
    """Seconds between the two dates in a file's name, 0 if there are none."""
    if (match := _SPAN.search(file_name)) is None:
        return 0.0
    start, end = (
        datetime.strptime(" ".join(part), "%Y-%m-%d %H %M")
        for part in (match.groups()[:3], match.groups()[3:])
    )
    return (end - start).total_seconds()
