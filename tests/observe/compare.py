"""Whether what Prometheus answers is what the records say. Pure.

A record and a scrape are never of the same moment, so a value is held against what the records say
a little before and a little after: it must lie between the least and the most of that. Where
nothing changes in that time, that is one value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Labels = frozenset[tuple[str, str]]
Values = Mapping[Labels, float]


@dataclass(frozen=True)
class Between:
    """A record that bounds a value, or one (``optional``) that need not be told yet."""

    least: float
    most: float
    optional: bool = False


Records = Mapping[Labels, float | Between]
Expect = Callable[[float], Records | None]
"""What the records say of a moment; None where they say nothing (the API server was away)."""


@dataclass(frozen=True)
class Lag:
    """How far a scrape may be from the records."""

    behind_s: float = 3.0
    """The operator looks at a job every second or sooner, and is scraped every second."""
    ahead_s: float = 6.0
    """A status is written when something but its numbers changes: at once on an idle machine."""
    relative: float = 1e-6
    """Of the value."""


NOW = Lag()
NUMBERS = Lag(ahead_s=8.0)
"""Numbers of a status are written every five seconds, and gauges are told at once."""
COUNTED = Lag(behind_s=8.0, ahead_s=3.0)
"""Counters are told as they are written, so up to five seconds after what they count."""
PULSE = Lag(behind_s=13.0, ahead_s=2.0)
"""The operator asks every five seconds whether a program answers, and waits some for it."""
_SHIFT_S = 0.5
STEP_S = 5.0
"""Between two moments that are compared."""


@dataclass(frozen=True)
class Moment:
    """One comparison."""

    at_s: float
    answered: Values
    recorded: Records
    wrong: Sequence[str]
    """What does not agree, in words."""


def compare(at_s: float, answered: Values, expect: Expect, lag: Lag) -> Moment | None:
    """Holds an answer against the records around its moment; None where those are silent."""
    count = round((lag.behind_s + lag.ahead_s) / _SHIFT_S)
    shifts = [at_s - lag.behind_s + _SHIFT_S * n for n in range(count + 1)]
    found = [expect(moment) for moment in shifts]
    known = [records for records in found if records is not None]
    if len(known) < len(found):
        return None
    merged = merge(known)
    return Moment(at_s, answered, merged, wrongs(answered, merged, lag.relative))


def merge(found: Sequence[Records]) -> dict[Labels, Between]:
    """The least and the most that any of these say; what one of them lacks is optional."""
    every = {labels for records in found for labels in records}
    merged = {}
    for labels in every:
        bounds = [_bounds(r[labels]) for r in found if labels in r]
        merged[labels] = Between(
            min(b.least for b in bounds),
            max(b.most for b in bounds),
            len(bounds) < len(found) or any(b.optional for b in bounds),
        )
    return merged


def wrongs(answered: Values, recorded: Records, relative: float) -> list[str]:
    """What does not agree, in words."""
    found = []
    for labels in sorted(answered.keys() | recorded.keys(), key=sorted):
        name = words(labels)
        if labels not in recorded:
            found.append(f"{name}{answered[labels]:g} is in no record")
            continue
        bounds = _bounds(recorded[labels])
        if labels not in answered:
            if not bounds.optional:
                found.append(f"{name}nothing, and not {span(bounds)}")
            continue
        value = answered[labels]
        room = relative * max(abs(bounds.least), abs(bounds.most)) + 1e-9
        if math.isnan(value) or not bounds.least - room <= value <= bounds.most + room:
            found.append(f"{name}{value:g} and not {span(bounds)}")
    return found


def words(labels: Labels) -> str:
    """Labels for people, before a value."""
    return " ".join(text or '""' for _, text in sorted(labels)) + " " if labels else ""


def span(value: float | Between) -> str:
    """A record for people."""
    bounds = _bounds(value)
    if bounds.least == bounds.most:
        return f"{bounds.least:.4g}"
    return f"{bounds.least:.4g}…{bounds.most:.4g}"


def _bounds(value: float | Between) -> Between:
    return value if isinstance(value, Between) else Between(value, value)
