"""Reads a trace from a file in any known format, told by its content."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from parcae_traces import compact
from parcae_traces.formats import dated_counts, node_rows, skypilot, spotserve, step_plot
from parcae_traces.formats.text import Text, read_text
from parcae_traces.model import Trace


@dataclass(frozen=True, slots=True)
class Format:
    """How to know a format by a file's first line, and how to read it."""

    name: str
    accepts: Callable[[str], bool]
    parse: Callable[[Text], Trace]


FORMATS = (
    Format("this project's own", compact.is_compact, compact.parse_compact),
    Format(skypilot.FORMAT, skypilot.is_skypilot, skypilot.parse_skypilot),
    Format(spotserve.FORMAT, spotserve.is_spotserve, spotserve.parse_spotserve),
    Format(dated_counts.FORMAT, dated_counts.is_dated_counts, dated_counts.parse_dated_counts),
    Format(node_rows.FORMAT, node_rows.is_node_rows, node_rows.parse_node_rows),
    Format(step_plot.FORMAT, step_plot.is_step_plot, step_plot.parse_step_plot),
)


def read_trace(path: Path) -> Trace:
    """Read a trace.

    Raises:
        InputError: the file is unreadable, empty, in no known format, or wrong in a line.
            One sentence: file, line, what is wrong, what to do.
    """
    text = read_text(path)
    first = text.rows[0]
    for known in FORMATS:
        if known.accepts(first.content):
            return known.parse(text)
    shown = first.content if len(first.content) <= 40 else f"{first.content[:40]}..."
    names = "; ".join(known.name for known in FORMATS)
    text.fail(first.number, f"{shown!r} starts no known format of a trace; known are: {names}")
