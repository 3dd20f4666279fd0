"""Counts instances per planning interval: the history that forecasts are made from. Pure."""

from __future__ import annotations

from parcae_api.history import History, IntervalCounts

INTERVALS_KEPT = 240
"""Four hours of minutes: forecasts have forgotten what was before."""


class Availability:
    """The running interval and those before it.

    An instance counts from when its workers are ready until it is noticed or lost. What happened
    while nobody looked (the operator was down) counts in the interval of the next look.
    """

    def __init__(self, interval_s: float, now_unix_s: float, history: History | None) -> None:
        """``history`` is what an earlier operator left on the board; another clock's is dropped."""
        fits = history is not None and history.interval_s == interval_s
        self.history = history if history and fits else History(interval_s=interval_s)
        last = self.history.intervals[-1] if self.history.intervals else None
        self._start_unix_s = last.start_unix_s + interval_s if last else now_unix_s
        self._lost_sight = last.available if last else None
        """Instances when an earlier operator last looked."""
        self._present: frozenset[str] = frozenset()
        self._added = self._removed = 0

    def saw(self, now_unix_s: float, instances: frozenset[str]) -> bool:
        """Take in a look; whether an interval has ended since the last one.

        Args:
            now_unix_s: The time. Where it went back by more than an interval, a new one begins.
            instances: Incarnations that are there and stay.
        """
        ended = False
        if now_unix_s < self._start_unix_s - self.history.interval_s:
            self._start_unix_s = now_unix_s  # else nothing would be counted until it is reached
        while now_unix_s >= self._start_unix_s + self.history.interval_s:
            self._close(now_unix_s)
            ended = True
        if self._lost_sight is not None:
            change = len(instances) - self._lost_sight
            self._added, self._removed = max(0, change), max(0, -change)
            self._lost_sight = None
        else:
            self._added += len(instances - self._present)
            self._removed += len(self._present - instances)
        self._present = instances
        return ended

    def _close(self, now_unix_s: float) -> None:
        interval_s = self.history.interval_s
        behind = int((now_unix_s - self._start_unix_s) / interval_s)
        if behind > INTERVALS_KEPT:  # a clock that jumped, or days of sleep: nothing is known of it
            self._start_unix_s += (behind - INTERVALS_KEPT) * interval_s
        available = len(self._present) if self._lost_sight is None else self._lost_sight
        counts = IntervalCounts(
            start_unix_s=self._start_unix_s,
            available=available,
            added=self._added,
            removed=self._removed,
        )
        self.history = self.history.with_interval(counts, INTERVALS_KEPT)
        self._start_unix_s += interval_s
        self._added = self._removed = 0
