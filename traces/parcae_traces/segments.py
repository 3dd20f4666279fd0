"""A part of a trace, as a trace of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from parcae_api.errors import InputError
from parcae_traces.model import Life, Trace, ordered, to_millisecond

HOUR_S = 3600.0
_HOURS = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)h?")


@dataclass(frozen=True, slots=True)
class Segment:
    """The half-open span [start, end) of a trace, in seconds."""

    name: str
    start_s: float
    end_s: float

    @property
    def hours(self) -> str:
        """Where it lies, like ``5.5-6.5``."""
        return f"{self.start_s / HOUR_S:g}-{self.end_s / HOUR_S:g}"


PUBLISHED = {
    "hadp": Segment("hadp", 5.5 * HOUR_S, 6.5 * HOUR_S),
    "hasp": Segment("hasp", 1.5 * HOUR_S, 2.5 * HOUR_S),
    "ladp": Segment("ladp", 8.0 * HOUR_S, 9.0 * HOUR_S),
    "lasp": Segment("lasp", 10.0 * HOUR_S, 11.0 * HOUR_S),
}
"""The hours of the p3 recording that the Parcae paper evaluates: high or low availability (ha, la)
with dense or sparse preemptions (dp, sp)."""


def parse_segment(text: str) -> Segment:
    """Read a segment: a published name, or ``start-end`` in hours such as ``1.5-2.5``.

    Raises:
        InputError: it is neither, or ends before it starts.
    """
    if (published := PUBLISHED.get(text.lower())) is not None:
        return published
    if (match := _HOURS.fullmatch(text.strip())) is None:
        raise InputError(
            f"segment {text!r} is unknown; give {', '.join(PUBLISHED)}, or start and end in hours "
            "like 1.5-2.5"
        )
    start_s, end_s = (to_millisecond(float(hours) * HOUR_S) for hours in match.groups())
    if start_s >= end_s:
        raise InputError(f"segment {text!r} ends before it starts; give start-end in hours")
    hours = f"{start_s / HOUR_S:g}-{end_s / HOUR_S:g}"
    return Segment(f"{hours}h", start_s, end_s)


def check_within(segment: Segment, trace: Trace) -> None:
    """Refuse a segment that the recording does not have.

    Raises:
        InputError: it reaches beyond the trace.
    """
    if segment.end_s > trace.duration_s:
        raise InputError(
            f"segment {segment.name} ends at hour {segment.end_s / HOUR_S:g}, but {trace.name} "
            f"lasts {trace.duration_s / HOUR_S:.4g} hours; give one that ends before"
        )


def cut(trace: Trace, segment: Segment) -> Trace:
    """The trace between the segment's ends, its start moved to 0.

    Instances alive at the start join at 0. Removals of the very moment of the start have
    happened; what happens at the end or later has not. Numbers, capacity and notices stay.

    Raises:
        InputError: the segment reaches beyond the trace.
    """
    check_within(segment, trace)
    duration_s = to_millisecond(segment.end_s - segment.start_s)
    moved = (_moved(life, segment.start_s, duration_s) for life in trace.lives)
    return replace(
        trace,
        name=f"{trace.name}-{segment.name}",
        source=f"{trace.source}; hours {segment.hours} of it",
        duration_s=duration_s,
        lives=ordered(life for life in moved if life is not None),
    )


def _moved(life: Life, start_s: float, duration_s: float) -> Life | None:
    """The life in the segment's own time; what belongs in it is told by the rounded times."""
    joined_s = to_millisecond(max(life.joined_s - start_s, 0.0))
    if joined_s >= duration_s:
        return None
    removed_s = None if life.removed_s is None else to_millisecond(life.removed_s - start_s)
    if removed_s is None or removed_s >= duration_s:
        return Life(life.instance, joined_s)
    # A life shorter than the millisecond to which times are rounded vanishes, too.
    if removed_s <= joined_s:
        return None
    return Life(life.instance, joined_s, removed_s, life.notice_s)
