"""A trace as the planning clock sees it: what each interval added, removed and left over.

Interval i is [i·L, (i+1)·L) with L the interval's length; it holds the events of that span, and
its count is the one before it plus what was added less what was removed. This is how the
published Parcae simulation reads a recording.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from parcae_traces.model import Trace

INTERVAL_S = 60.0


@dataclass(frozen=True, slots=True)
class Series:
    """One number per interval in each of three rows of equal length."""

    interval_s: float
    available: tuple[int, ...]
    """Instances at the end of the interval."""
    added: tuple[int, ...]
    removed: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.available)

    def window(self, first: int, stop: int) -> Series:
        """Intervals ``first`` to ``stop`` - 1."""
        cut = slice(first, stop)
        return Series(self.interval_s, self.available[cut], self.added[cut], self.removed[cut])

    def num_eventful(self) -> int:
        """Intervals in which anything was added or removed."""
        return sum(bool(a or r) for a, r in zip(self.added, self.removed, strict=True))


def series_of(trace: Trace, interval_s: float = INTERVAL_S) -> Series:
    """Count a trace per interval. The last interval may be cut short by the trace's end.

    Raises:
        ValueError: ``interval_s`` is not positive.
    """
    if not interval_s > 0:
        raise ValueError(f"an interval of {interval_s} s has no length")
    num_intervals = math.ceil(trace.duration_s / interval_s)
    added = [0] * num_intervals
    removed = [0] * num_intervals
    for moment in trace.moments():
        interval = min(int(moment.time_s // interval_s), num_intervals - 1)
        added[interval] += len(moment.joined)
        removed[interval] += len(moment.removed)
    available: list[int] = []
    count = 0
    for plus, minus in zip(added, removed, strict=True):
        count += plus - minus
        available.append(count)
    return Series(interval_s, tuple(available), tuple(added), tuple(removed))
