"""How often batches of removals and additions strike, by the time since the last ones.

A removal is seldom alone: on AWS another follows within 2 minutes with probability 0.41, against
0.12 at any time; and hardly anything is removed in the minute after an addition. So the chance of
an event in an interval is a hazard that depends on two ages, the intervals since the last removal
and since the last addition, told apart in buckets. An interval weighs less the older it is, because
markets change within hours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parcae_predictor.batches import Batches, Floats, Ints
from parcae_traces.series import Series

BUCKET_ENDS = (1, 2, 4, 8, 16, 32)
"""Oldest age of each bucket, in intervals; one more bucket holds all that are older."""
NUM_BUCKETS = len(BUCKET_ENDS) + 1
OLDEST = BUCKET_ENDS[-1] + 1
"""Ages beyond are alike."""
BUCKET_OF_AGE: Ints = np.searchsorted(BUCKET_ENDS, np.arange(OLDEST + 1)).astype(np.int64)
"""[OLDEST + 1]: the bucket of each age."""
HIGHEST_HAZARD = 0.95
"""Two factors above 1 may multiply to more than a probability."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Weighted intervals, by bucket of one age."""

    events: Floats
    """[buckets]: intervals with an event."""
    exposure: Floats
    """[buckets]: intervals in which one could have come."""

    def pooled(self) -> float:
        """Rate over all ages; 0 if no event could have come."""
        exposure = float(self.exposure.sum())
        return float(self.events.sum()) / exposure if exposure > 0 else 0.0

    def rates(self, shrinkage: float) -> Floats:
        """[OLDEST + 1]: probability of an event by age.

        Each bucket is drawn towards the pooled rate as if it had seen ``shrinkage`` more
        intervals of it: the empirical Bayes mean of a binomial rate.
        """
        by_bucket = (self.events + shrinkage * self.pooled()) / (self.exposure + shrinkage)
        return np.asarray(by_bucket[BUCKET_OF_AGE], dtype=np.float64)

    def plus(self, other: Tally, times: float) -> Tally:
        """Both together, the other one multiplied."""
        return Tally(self.events + times * other.events, self.exposure + times * other.exposure)


@dataclass(frozen=True, slots=True)
class Tallies:
    """One kind of event, by either age."""

    since_removal: Tally
    since_addition: Tally

    def plus(self, other: Tallies, times: float) -> Tallies:
        """Both together, the other ones multiplied."""
        return Tallies(
            self.since_removal.plus(other.since_removal, times),
            self.since_addition.plus(other.since_addition, times),
        )

    def hazard(self, shrinkage: float) -> Floats:
        """[age since removal, age since addition]: probability of an event in an interval.

        The pooled rate times one factor for each age; both ages together have too few intervals.
        """
        pooled = self.since_removal.pooled()
        if pooled == 0:
            return np.zeros((OLDEST + 1, OLDEST + 1))
        product = np.outer(
            self.since_removal.rates(shrinkage), self.since_addition.rates(shrinkage) / pooled
        )
        return np.minimum(product, HIGHEST_HAZARD)


@dataclass(frozen=True, slots=True)
class Rows:
    """A history as arrays, one element per interval."""

    before: Ints
    """Instances that the interval began with."""
    added: Ints
    removed: Ints

    def __len__(self) -> int:
        return len(self.before)

    def removal_ages(self) -> Ints:
        """[intervals + 1]: age since the last removal in each interval and in the one to come."""
        return _ages(self.removed > 0)

    def addition_ages(self) -> Ints:
        """[intervals + 1]: likewise since the last addition."""
        return _ages(self.added > 0)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a history says."""

    removals: Tallies
    additions: Tallies
    removal_batches: Batches
    addition_batches: Batches
    removal_age: int
    """In the interval to come."""
    addition_age: int


def rows_of(series: Series, most: int) -> Rows:
    """The last ``most`` intervals that have a predecessor.

    The first interval of a series has none: what it "added" may be the stock it began with.
    """
    first = max(len(series) - most, 1)
    available = np.asarray(series.available[first - 1 :], dtype=np.int64)
    return Rows(
        available[:-1],
        np.asarray(series.added[first:], dtype=np.int64),
        np.asarray(series.removed[first:], dtype=np.int64),
    )


def look(rows: Rows, capacity: int, half_life: float) -> Seen:
    """Count a history, the newest interval with weight 1.

    An addition could have come only where nothing was removed and there was room.

    Args:
        rows: The history.
        capacity: Instances asked for.
        half_life: Intervals after which a weight is halved; infinite for none.
    """
    length = len(rows)
    weights = np.exp2((np.arange(length) - length + 1) / half_life)
    removal, addition = rows.removed > 0, rows.added > 0
    removal_ages, addition_ages = rows.removal_ages(), rows.addition_ages()
    ages = removal_ages[:-1], addition_ages[:-1]
    after = rows.before + rows.added - rows.removed
    return Seen(
        _tallies(removal, (rows.before > 0) | removal, ages, weights),
        _tallies(addition, ((rows.before < capacity) & ~removal) | addition, ages, weights),
        Batches(
            rows.removed[removal].astype(np.float64),
            weights[removal],
            rows.removed[removal] >= rows.before[removal],
        ),
        Batches(
            rows.added[addition].astype(np.float64),
            weights[addition],
            after[addition] >= capacity,
        ),
        int(removal_ages[-1]),
        int(addition_ages[-1]),
    )


def _ages(event: NDArray[np.bool_]) -> Ints:
    """Before the first event, the time since the history began: a lower bound."""
    index = np.arange(1, len(event) + 1)
    last = np.maximum.accumulate(np.where(event, index, 0))
    ages = np.concatenate(([1], index + 1 - last))
    return np.minimum(ages, OLDEST)


def _tallies(
    event: NDArray[np.bool_], possible: NDArray[np.bool_], ages: tuple[Ints, Ints], weights: Floats
) -> Tallies:
    happened, exposed = weights * event, weights * possible
    by_removal, by_addition = (BUCKET_OF_AGE[age] for age in ages)
    return Tallies(
        _tally(by_removal, happened, exposed),
        _tally(by_addition, happened, exposed),
    )


def _tally(buckets: Ints, happened: Floats, exposed: Floats) -> Tally:
    events, exposure = (
        np.bincount(buckets, weights, NUM_BUCKETS).astype(np.float64)
        for weights in (happened, exposed)
    )
    return Tally(events, exposure)
