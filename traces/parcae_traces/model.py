"""The trace model: which spot instance was there when, and how early its removal was announced.

A trace is a set of *lives*, one per instance. An instance joins once, is removed at most once
and never returns: whoever comes back is a new instance with a new number. What would be an
invariant over an event log (nobody joins twice, nobody absent is removed) thus holds by
construction; :class:`parcae_traces.roster.Roster` checks it where a log is read.

Times are seconds from the start of the trace. What happens at one moment happens together:
removals of one moment are one batch, and a count at a moment includes all that it brought.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate

DEFAULT_NOTICE_S = 120.0
"""What AWS gives; GCP and Azure give 30 s."""
LATEST_S = 1e13
"""Beyond any time of a trace, even one counted in milliseconds since 1970."""
MOST_INSTANCES = 99_999
"""Largest capacity. These two bounds keep a slip of the pen from filling the memory."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Change(StrEnum):
    """What an event does to the set of instances."""

    REMOVAL = "removal"
    JOIN = "join"


@dataclass(frozen=True, slots=True)
class Life:
    """One instance, from its join to its removal."""

    instance: int
    """Unique in its trace; not negative. Cutting and scaling a trace keep it."""
    joined_s: float
    removed_s: float | None = None
    """None: still there when the trace ends."""
    notice_s: float | None = None
    """Seconds of warning before the removal, 0 for none. None: unknown, the trace's default."""

    def __post_init__(self) -> None:
        who = f"instance {self.instance}"
        if self.instance < 0:
            raise ValueError(f"{who}: its number must not be negative")
        if not _is_time(self.joined_s):
            raise ValueError(f"{who}: joins at {self.joined_s} s, which is no time of a trace")
        if self.removed_s is not None and not self.joined_s < self.removed_s <= LATEST_S:
            raise ValueError(
                f"{who}: is removed at {self.removed_s:g} s but joined at {self.joined_s:g} s; "
                "a removal comes after its join"
            )
        if self.notice_s is not None and (self.removed_s is None or not _is_time(self.notice_s)):
            raise ValueError(f"{who}: {self.notice_s} s of notice belong to no removal")

    def is_alive_at(self, time_s: float) -> bool:
        """Whether the instance is there once everything of that moment has happened."""
        return self.joined_s <= time_s and (self.removed_s is None or time_s < self.removed_s)

    def seconds_until(self, end_s: float) -> float:
        """Seconds lived in a trace that ends at ``end_s``."""
        return (end_s if self.removed_s is None else self.removed_s) - self.joined_s


@dataclass(frozen=True, slots=True)
class Moment:
    """All that happens at one time."""

    time_s: float
    removed: tuple[Life, ...]
    joined: tuple[Life, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One join or one removal, as a player of the trace needs it."""

    time_s: float
    change: Change
    instance: int
    notice_s: float = 0.0
    """Of a removal: seconds of warning, the trace's default filled in."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A recording or an invention of spot instances coming and going."""

    name: str
    """Letters, digits, dots, dashes and underscores."""
    source: str
    """One sentence: what was recorded, where, when, and what was done to it since."""
    duration_s: float
    """Everything happens before this time."""
    capacity: int
    """How many instances were asked for: the count never exceeds it."""
    lives: tuple[Life, ...]
    """Ordered by time of join, then by number."""
    notice_s: float = DEFAULT_NOTICE_S
    """Seconds of warning where a removal does not say its own."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a trace; use letters, digits, . _ and -")
        if not self.source or self.source != " ".join(self.source.split()):
            raise ValueError(f"{self.name}: its source must be one line of text")
        if not _is_time(self.duration_s) or self.duration_s == 0:
            raise ValueError(f"{self.name}: {self.duration_s} s is no duration")
        if not _is_time(self.notice_s):
            raise ValueError(f"{self.name}: {self.notice_s} s is no notice")
        self._check_lives()

    def _check_lives(self) -> None:
        if list(self.lives) != sorted(self.lives, key=_order):
            raise ValueError(f"{self.name}: its lives must be ordered by join, then by number")
        if len({life.instance for life in self.lives}) < len(self.lives):
            raise ValueError(f"{self.name}: two lives have the same number")
        for life in self.lives:
            last_s = life.joined_s if life.removed_s is None else life.removed_s
            if last_s >= self.duration_s:
                raise ValueError(
                    f"{self.name}: instance {life.instance} changes at {last_s:g} s, but the "
                    f"trace ends at {self.duration_s:g} s"
                )
        if self.capacity > MOST_INSTANCES:
            raise ValueError(f"{self.name}: a capacity of {self.capacity} is beyond all reason")
        peak = self.peak()
        if self.capacity < max(1, peak):
            raise ValueError(
                f"{self.name}: {peak} instances at once exceed its capacity of {self.capacity}"
            )

    def moments(self) -> tuple[Moment, ...]:
        """All times at which anything happens, in order."""
        joined: dict[float, list[Life]] = {}
        removed: dict[float, list[Life]] = {}
        for life in self.lives:
            joined.setdefault(life.joined_s, []).append(life)
            if life.removed_s is not None:
                removed.setdefault(life.removed_s, []).append(life)
        return tuple(
            Moment(
                time_s,
                removed=tuple(sorted(removed.get(time_s, []), key=lambda life: life.instance)),
                joined=tuple(joined.get(time_s, [])),
            )
            for time_s in sorted(joined.keys() | removed.keys())
        )

    def events(self) -> tuple[Event, ...]:
        """Every join and removal in order of time; at one time removals first."""
        flat: list[Event] = []
        for moment in self.moments():
            flat += [
                Event(moment.time_s, Change.REMOVAL, life.instance, self.notice_for(life))
                for life in moment.removed
            ]
            flat += [Event(moment.time_s, Change.JOIN, life.instance) for life in moment.joined]
        return tuple(flat)

    def notice_for(self, life: Life) -> float:
        """Seconds of warning before this instance's removal, the default filled in.

        It may reach back beyond the join of a short life: the warning then comes with the join.
        """
        return self.notice_s if life.notice_s is None else life.notice_s

    def counts(self) -> tuple[tuple[float, int], ...]:
        """The step function of the count: (time in seconds, instances from then on)."""
        moments = self.moments()
        changes = (len(moment.joined) - len(moment.removed) for moment in moments)
        return tuple(
            (moment.time_s, count)
            for moment, count in zip(moments, accumulate(changes), strict=True)
        )

    def count_at(self, time_s: float) -> int:
        """Instances there once everything of that moment has happened."""
        return sum(life.is_alive_at(time_s) for life in self.lives)

    def peak(self) -> int:
        """Most instances at once."""
        return max((count for _, count in self.counts()), default=0)


def ordered(lives: Iterable[Life]) -> tuple[Life, ...]:
    """The order in which a trace holds its lives."""
    return tuple(sorted(lives, key=_order))


def to_millisecond(time_s: float) -> float:
    """Round a computed time, so that sums and products of decimals stay readable."""
    return round(time_s, 3)


def _order(life: Life) -> tuple[float, int]:
    return life.joined_s, life.instance


def _is_time(value_s: float) -> bool:
    return 0 <= value_s <= LATEST_S
