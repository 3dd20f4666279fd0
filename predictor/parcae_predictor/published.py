"""The predictor of the Parcae paper, rule by rule: what its simulation forecasts with.

Twelve counts are smoothed of outliers and cut at their turning point, continued by ARIMA(1,1,0)
with drift, clamped, and turned into additions and removals. Strong one-sided histories damp all
later changes of that side. Kept as it is, odd as some rules are, so that the published results
can be rebuilt; as a forecast it is worse than no change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from parcae_predictor.batches import Floats, Ints
from parcae_predictor.drift import drift_path

WINDOW = 12
"""Counts that are looked at, and intervals that are forecast."""
LARGEST_OUTLIER = 3
LARGEST_MOVE = 3.0
"""The path stays this close to its first value."""
STRONG, VERY_STRONG = 5, 10
"""Instances gained or lost in a one-sided window, from which on that side is damped."""
STRONG_FACTOR, VERY_STRONG_FACTOR = 0.75, 0.5

PathFit = Callable[[Floats, int], Floats]
"""Counts and steps to a path."""


@dataclass
class PublishedForecaster:
    """Keeps its damping from call to call, so use one per run, in order of time."""

    lower: int = 8
    upper: int = 32
    floor: int | None = None
    """GPT-3 6.7B in the paper: a step whose change, applied twice, leads below is left out."""
    fit: PathFit = drift_path
    up: float = field(default=1.0, init=False)
    """Factor on additions; lowered for good by a steep rise."""
    down: float = field(default=1.0, init=False)
    """Factor on removals; lowered for good by a steep fall."""

    def forecast(
        self,
        counts: Sequence[int],
        removed: Sequence[int],
        rng: np.random.Generator | None = None,
    ) -> tuple[list[int], list[int]]:
        """Forecast the 12 intervals after a history.

        Args:
            counts: Instances at the end of each interval since the start, oldest first. Up to 12
                of them forecast no change.
            removed: Instances removed in each interval.
            rng: Draws the random removals of a path without a trend; None: there are none,
                which is their most common value.

        Returns:
            added, removed: 12 whole numbers each.
        """
        added, gone = self.paths(counts, removed, rng)
        return added[0].tolist(), gone[0].tolist()

    def paths(
        self,
        counts: Sequence[int],
        removed: Sequence[int],
        rng: np.random.Generator | None = None,
        num_paths: int = 1,
    ) -> tuple[Ints, Ints]:
        """The same with many draws of the random removals.

        Returns:
            added, removed: each [num_paths, 12].
        """
        if len(counts) <= WINDOW:
            nothing: Ints = np.zeros((num_paths, WINDOW), dtype=np.int64)
            return nothing, nothing
        window = self.observe(counts)
        expected = self._expected(window)
        extra: Ints = np.zeros((num_paths, WINDOW), dtype=np.int64)
        if rng is not None and np.ptp(expected) == 0 and len(set(window)) > 1:
            rate = min(np.std(window), np.var(window), np.mean(removed[-WINDOW:]))
            extra = rng.poisson(rate, (num_paths, WINDOW))
        return self._changes(int(counts[-1]), expected, extra)

    def observe(self, counts: Sequence[int]) -> list[int]:
        """Prepare the last 12 counts, and note what they say about damping.

        Args:
            counts: At least 12.
        """
        window = cut_at_turn(without_outliers([int(count) for count in counts[-WINDOW:]]))
        rise, fall = window[-1] - min(window), max(window) - window[-1]
        if _is_sorted(window) and rise >= STRONG:
            self.up = STRONG_FACTOR if rise < VERY_STRONG else VERY_STRONG_FACTOR
        if _is_sorted(window[::-1]) and fall >= STRONG:
            self.down = STRONG_FACTOR if fall < VERY_STRONG else VERY_STRONG_FACTOR
        return window

    def _expected(self, window: list[int]) -> Floats:
        """[12]: whole counts, clamped."""
        counts = np.asarray(window, dtype=np.float64)
        path = np.rint(self.fit(counts, WINDOW))
        path[1:] = np.clip(path[1:], path[0] - LARGEST_MOVE, path[0] + LARGEST_MOVE)
        return np.clip(path, self.lower, self.upper)

    def _changes(self, current: int, expected: Floats, extra: Ints) -> tuple[Ints, Ints]:
        steps = np.diff(expected, prepend=current)
        wanted = self.up * np.maximum(steps, 0) - self.down * np.maximum(-steps, 0)
        change: Ints = np.zeros(extra.shape, dtype=np.int64)
        count = np.full(len(extra), current, dtype=np.int64)
        for step in range(WINDOW):
            # Halves go to the even neighbour, as in the published code.
            after = np.rint(count + wanted[step] - self.down * extra[:, step]).astype(np.int64)
            change[:, step] = after - count
            count = after
            if self.floor is not None:
                change[after + change[:, step] < self.floor, step] = 0
        return np.maximum(change, 0), np.maximum(-change, 0)


def without_outliers(window: list[int]) -> list[int]:
    """Level runs of 3, 2, then 1 counts that differ from two equal neighbours."""
    level = list(window)
    for size in range(LARGEST_OUTLIER, 0, -1):
        for left in range(len(level) - 1 - size):
            right = left + 1 + size
            between = level[left + 1 : right]
            if level[left] == level[right] and level[left] not in between:
                level[left + 1 : right] = [level[left]] * size
    return level


def cut_at_turn(window: list[int]) -> list[int]:
    """Flatten what lies before the last lowest count, if it is below both ends; else highest."""
    ends = window[0], window[-1]
    if min(window) < min(ends):
        extreme = min(window)
    elif max(window) > max(ends):
        extreme = max(window)
    else:
        return window
    last = len(window) - 1 - window[::-1].index(extreme)
    return [extreme] * last + window[last:]


def _is_sorted(window: list[int]) -> bool:
    return all(a <= b for a, b in pairwise(window))
