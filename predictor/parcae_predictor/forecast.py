"""What a predictor is asked and what it answers.

A forecast is a joint law, given as sample paths: removals come in batches and follow upon each
other, so neither a mean nor independent instances can say what a layout will meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from parcae_api.job import HORIZON
from parcae_traces.series import Series

Counts = NDArray[np.int64]

NUM_PATHS = 400


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the coming intervals, beside the history."""

    removals: tuple[int, ...] = ()
    """Instances whose notice ends in each coming interval: certain to go."""
    likely_removals: int = 0
    """Instances with a hint that may yet be taken back (a rebalance recommendation)."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a predictor is asked."""

    series: Series
    """The intervals seen so far, oldest first; may be empty."""
    now: int
    """Instances at this moment."""
    capacity: int
    """How many are asked for: the count never exceeds it."""
    horizon: int = HORIZON
    num_paths: int = NUM_PATHS
    seed: int = 0
    known: Known = field(default_factory=Known)


@dataclass(frozen=True)
class Forecast:
    """Joint sample paths; ``[s, i]`` is path s, i intervals ahead (0 is the next interval)."""

    model: str
    now: int
    removed: Counts
    """[paths, horizon]; never more than there are."""
    added: Counts
    """[paths, horizon]"""

    @property
    def num_paths(self) -> int:
        """Sample paths."""
        return int(self.removed.shape[0])

    @property
    def horizon(self) -> int:
        """Intervals ahead."""
        return int(self.removed.shape[1])

    @cached_property
    def available(self) -> Counts:
        """[paths, horizon]: instances at the end of each interval."""
        changes: Counts = np.cumsum(self.added - self.removed, axis=1)
        return changes + self.now

    def mean(self) -> NDArray[np.float64]:
        """[horizon]: expected instances."""
        return np.asarray(self.available.mean(axis=0), dtype=np.float64)

    def quantile(self, q: float) -> NDArray[np.float64]:
        """[horizon]: the q-quantile of the instances."""
        return np.asarray(np.quantile(self.available, q, axis=0), dtype=np.float64)


class Predictor(Protocol):
    """Forecasts. Deterministic: the same question gets the same answer."""

    @property
    def name(self) -> str:
        """As users write it."""
        ...

    def forecast(self, question: Question) -> Forecast:
        """Draw what may come."""
        ...
