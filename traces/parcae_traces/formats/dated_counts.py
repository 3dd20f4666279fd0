"""``date, time, count``: Bamboo's recording of GCP, whose rows overlap.

Every poll was written down three times, for its own minute and, in advance, for the two that
follow; a poll that saw another count in these minutes comes later in the file with an earlier
time. The newest word holds: a row overrules every earlier row of its own or a later time. The
first row is time 0.
"""

from __future__ import annotations

from datetime import datetime

from parcae_traces.formats.counts import lives_of_counts
from parcae_traces.formats.recorded import recorded
from parcae_traces.formats.text import Text, end_of_minute, whole
from parcae_traces.model import Trace

FORMAT = "rows of date, time, count"
NOTICE_S = 30.0
"""What GCP gives; the format is known from there only."""


def is_dated_counts(first_line: str) -> bool:
    """Whether a file with this first line is in this format."""
    fields = first_line.split(",")
    return len(fields) == 3 and _instant(fields) is not None


def parse_dated_counts(text: Text) -> Trace:
    """Read and clean the rows; the capacity is the most instances at once.

    Raises:
        InputError: file, line, what is wrong, what to do.
    """
    steps: list[tuple[datetime, int]] = []
    for row in text.rows:
        with text.at(row.number):
            fields = row.content.split(",")
            if len(fields) != 3 or (instant := _instant(fields)) is None:
                raise ValueError(
                    "is no row of date, time, count like 2021-12-10, 13:07:45, 80; correct or "
                    "remove it"
                )
            if steps and instant < steps[0][0]:
                raise ValueError("lies before the first row; the file must start with its start")
            count = whole(fields[2], "count of instances")
        while steps and steps[-1][0] >= instant:
            steps.pop()
        steps.append((instant, count))
    start = steps[0][0]
    counts = [((instant - start).total_seconds(), count) for instant, count in steps]
    return recorded(
        text, FORMAT, lives_of_counts(counts), end_of_minute(counts[-1][0]), notice_s=NOTICE_S
    )


def _instant(fields: list[str]) -> datetime | None:
    try:
        return datetime.strptime(f"{fields[0].strip()} {fields[1].strip()}", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return None
