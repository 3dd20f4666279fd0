"""``time_ms,add|remove,node``: what Bamboo and Parcae published, and SpotServe reuses.

Node names are what tells instances apart; a name that returns is a new instance.
"""

from __future__ import annotations

import re

from parcae_traces.formats.recorded import recorded
from parcae_traces.formats.text import Text, end_of_minute, number
from parcae_traces.model import Trace
from parcae_traces.roster import Roster

FORMAT = "rows of time_ms,add|remove,node"

_FIRST = re.compile(r"[^,]+,\s*(add|remove)\s*,.*")


def is_node_rows(first_line: str) -> bool:
    """Whether a file with this first line is in this format."""
    return _FIRST.fullmatch(first_line) is not None


def parse_node_rows(text: Text) -> Trace:
    """Read the rows; the capacity is the most instances at once.

    Raises:
        InputError: file, line, what is wrong, what to do.
    """
    roster = Roster()
    for row in text.rows:
        with text.at(row.number):
            fields = [field.strip() for field in row.content.split(",")]
            if len(fields) != 3 or not fields[2]:
                raise ValueError("is no row of time_ms,add|remove,node; correct or remove it")
            apply_change(roster, number(fields[0], "time in ms") / 1000, fields[1], fields[2])
    return recorded(text, FORMAT, roster.lives(), end_of_minute(roster.last_s))


def apply_change(roster: Roster, time_s: float, action: str, node: str) -> None:
    """Feed one ``add`` or ``remove`` of a named node.

    Raises:
        ValueError: the action is unknown or impossible.
    """
    match action:
        case "add":
            roster.join(time_s, node)
        case "remove":
            roster.remove(time_s, node)
        case _:
            raise ValueError(f"{action!r} is no action; write add or remove")
