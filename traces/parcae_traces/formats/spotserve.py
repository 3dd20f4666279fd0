"""``[time_ms, "add"|"remove"|"DONE", {"nodes": [...]}]``, one JSON array a line: SpotServe.

``DONE`` ends the recording; without it, it ends with the minute of its last row.
"""

from __future__ import annotations

import json

from parcae_traces.formats.node_rows import apply_change
from parcae_traces.formats.recorded import recorded
from parcae_traces.formats.text import Text, end_of_minute, number
from parcae_traces.model import Trace
from parcae_traces.roster import Roster

FORMAT = 'lines of [time_ms, "add"|"remove"|"DONE", {"nodes": [...]}]'


def is_spotserve(first_line: str) -> bool:
    """Whether a file with this first line is in this format."""
    return first_line.startswith("[")


def parse_spotserve(text: Text) -> Trace:
    """Read the lines; the capacity is the most instances at once.

    Raises:
        InputError: file, line, what is wrong, what to do.
    """
    roster = Roster()
    end_s: float | None = None
    for row in text.rows:
        with text.at(row.number):
            time_s, action, nodes = _fields(row.content)
            if end_s is not None:
                raise ValueError("comes after DONE; remove it, or move DONE to the end")
            if action == "DONE":
                if time_s <= roster.last_s:
                    raise ValueError("is DONE before or with the last change; end it later")
                end_s = time_s
                continue
            for node in nodes:
                apply_change(roster, time_s, action, node)
    return recorded(text, FORMAT, roster.lives(), end_s or end_of_minute(roster.last_s))


def _fields(line: str) -> tuple[float, str, list[str]]:
    try:
        match json.loads(line):
            case [int() | float() as time_ms, str(action), {"nodes": [*nodes]}] if all(
                isinstance(node, str) for node in nodes
            ):
                return number(str(time_ms), "time in ms") / 1000, action, nodes
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON: {error.msg} at column {error.colno}") from error
    raise ValueError(f"is none of the {FORMAT}; correct or remove it")
