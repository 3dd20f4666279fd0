"""What is replayed: a stretch of a recording, counted per interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from parcae_predictor.evaluate import kin_of
from parcae_traces import Series, Trace, check_within, parse_segment, series_of

WHOLE = "all"
"""Name of the segment that is the whole recording."""


@dataclass(frozen=True)
class Scenario:
    """Intervals ``first`` to ``stop`` - 1 of a series; what lies before is known history."""

    trace: str
    segment: str
    series: Series
    first: int
    stop: int
    capacity: int
    """How many instances were asked for."""
    akin: frozenset[str] = frozenset()
    """Bundled recordings that this one is, or is a part of: no forecaster may have learnt them."""

    @property
    def before(self) -> int:
        """Instances just before the first interval."""
        return self.series.available[self.first - 1] if self.first else 0

    @property
    def counts(self) -> tuple[int, ...]:
        """Instances at the end of each replayed interval."""
        return self.series.available[self.first : self.stop]

    @property
    def interval_s(self) -> float:
        """Length of an interval."""
        return self.series.interval_s

    def event(self, index: int) -> tuple[int, int]:
        """Added and removed in the interval with this number."""
        return self.series.added[index], self.series.removed[index]

    @property
    def mean_seconds_between_events(self) -> float:
        """Replayed seconds per interval with an event; infinite without any."""
        eventful = self.series.window(self.first, self.stop).num_eventful()
        seconds = (self.stop - self.first) * self.interval_s
        return seconds / eventful if eventful else math.inf


def scenario_of(trace: Trace, segment: str | None = None) -> Scenario:
    """Cut a segment out of a recording, all of it if none is named.

    The history before the segment stays visible; an interval that it touches belongs to it.

    Raises:
        InputError: the segment is unknown or reaches beyond the recording.
    """
    series = series_of(trace)
    akin = kin_of(trace)
    if segment is None:
        return Scenario(trace.name, WHOLE, series, 0, len(series), trace.capacity, akin)
    part = parse_segment(segment)
    check_within(part, trace)
    first = math.floor(part.start_s / series.interval_s)
    stop = math.ceil(part.end_s / series.interval_s)
    return Scenario(trace.name, part.name, series, first, stop, trace.capacity, akin)
