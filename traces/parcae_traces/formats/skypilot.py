"""``{"metadata": {"gap_seconds": G}, "data": [...]}``: SkyPilot's "Can't Be Late" recordings.

Entry i is the number of instances at time i·G. Both published kinds mean that by it: in the
preemption files it counts the instances that were held and are running (0 to 4 of 4), in the
availability files it says whether a launch would have succeeded (0 or 1), which is read as one
instance held whenever it could be had. Other keys, such as prices, are not read.

The file's own gap is taken, also where it is in doubt: the availability files of 2022-10-26 say
600 s (27 days in all), their authors' description says 13 days, which would be 300 s.
"""

from __future__ import annotations

import json
from typing import Any

from parcae_traces.formats.counts import lives_of_counts
from parcae_traces.formats.recorded import recorded
from parcae_traces.formats.text import Text
from parcae_traces.model import LATEST_S, MOST_INSTANCES, Trace, to_millisecond

FORMAT = 'JSON {"metadata": {"gap_seconds": ...}, "data": [...]}'


def is_skypilot(first_line: str) -> bool:
    """Whether a file with this first line is in this format."""
    return first_line.startswith("{")


def parse_skypilot(text: Text) -> Trace:
    """Read the document; the capacity is the most instances at once.

    Raises:
        InputError: file, line, what is wrong, what to do.
    """
    document = _document(text)
    last_line = text.rows[-1].number
    gap_s = _get(_get(document, "metadata"), "gap_seconds")
    if not _is_number(gap_s) or not 0 < gap_s <= LATEST_S:
        text.fail(last_line, f"metadata.gap_seconds is {gap_s!r}; make it a number above 0")
    data = _get(document, "data")
    if not isinstance(data, list) or not data:
        text.fail(last_line, "data is no list of counts; give one count per gap")
    for index, count in enumerate(data):
        if not _is_number(count) or not 0 <= count <= MOST_INSTANCES or count != int(count):
            text.fail(
                last_line,
                f"data[{index}] is {count!r}; make it a whole number from 0 to {MOST_INSTANCES}",
            )
    counts = ((to_millisecond(index * gap_s), int(count)) for index, count in enumerate(data))
    return recorded(text, FORMAT, lives_of_counts(counts), to_millisecond(len(data) * gap_s))


def _document(text: Text) -> Any:
    first = text.rows[0].number
    try:
        return json.loads("\n".join(row.content for row in text.rows))
    except json.JSONDecodeError as error:
        text.fail(first + error.lineno - 1, f"is no JSON: {error.msg}; restore the file")


def _get(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, dict) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
