"""Invented traces with the traits of recorded ones, for tests and experiments.

Recorded preemptions come in batches and may favour the young; additions come in batches too and
end at the capacity. Here both are drawn on a grid: in each interval a batch of removals may
strike, then a batch of joins may arrive. Batch sizes are geometric. Who is removed is drawn with
a hazard that falls with age from ``young_hazard`` times the old ones' at birth.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from parcae_traces.model import DEFAULT_NOTICE_S, Trace
from parcae_traces.roster import Roster


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """How a spot market behaves."""

    capacity: int = 8
    duration_s: float = 3600.0
    interval_s: float = 60.0
    """Everything happens on multiples of this."""
    initial: int | None = None
    """Instances at time 0; None: the whole capacity."""
    minimum: int = 0
    """No batch takes the count below this."""
    removal_batches_per_hour: float = 8.0
    mean_removal_batch: float = 2.0
    join_batches_per_hour: float = 12.0
    mean_join_batch: float = 1.5
    young_hazard: float = 3.0
    """Hazard of a newborn instance, in hazards of an old one."""
    young_s: float = 900.0
    """Time in which the excess of the young hazard falls to 1/e."""
    unnoticed_share: float = 0.0
    """Removals that come without any notice; the others have the default's."""
    notice_s: float = DEFAULT_NOTICE_S

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.num_initial <= self.capacity:
            raise ValueError("needs 0 <= minimum <= initial <= capacity")
        if self.capacity < 1 or not self.interval_s > 0 or not self.duration_s > 0:
            raise ValueError("needs a capacity, an interval and a duration above 0")
        if min(self.mean_removal_batch, self.mean_join_batch, self.young_hazard) < 1:
            raise ValueError("mean batches and young_hazard must be at least 1")

    @property
    def num_initial(self) -> int:
        """Instances at time 0."""
        return self.capacity if self.initial is None else self.initial


def generate(market: Market, seed: int = 0) -> Trace:
    """Draw a trace; the same market and seed give the same one."""
    rng = random.Random(seed)
    roster = Roster()
    born_s: dict[int, float] = {}
    for instance in range(1, market.num_initial + 1):
        roster.join(0.0, instance, instance)
        born_s[instance] = 0.0
    newest = market.num_initial
    for interval in range(1, math.ceil(market.duration_s / market.interval_s)):
        time_s = interval * market.interval_s
        size = _batch(rng, market, market.removal_batches_per_hour, market.mean_removal_batch)
        for _ in range(min(size, len(born_s) - market.minimum)):
            victim = _victim(rng, market, time_s, born_s)
            unnoticed = rng.random() < market.unnoticed_share
            roster.remove(time_s, victim, 0.0 if unnoticed else None)
            del born_s[victim]
        size = _batch(rng, market, market.join_batches_per_hour, market.mean_join_batch)
        for _ in range(min(size, market.capacity - len(born_s))):
            newest += 1
            roster.join(time_s, newest, newest)
            born_s[newest] = time_s
    return Trace(
        name=f"generated-{seed}",
        source=f"drawn by the generator with seed {seed} for a capacity of {market.capacity}",
        duration_s=market.duration_s,
        capacity=market.capacity,
        lives=roster.lives(),
        notice_s=market.notice_s,
    )


def _batch(rng: random.Random, market: Market, per_hour: float, mean: float) -> int:
    """Size of the batch that strikes in one interval, mostly 0; geometric if one does."""
    if rng.random() >= per_hour * market.interval_s / 3600:
        return 0
    size = 1
    while rng.random() < 1 - 1 / mean:
        size += 1
    return size


def _victim(rng: random.Random, market: Market, time_s: float, born_s: dict[int, float]) -> int:
    """One instance, drawn with its hazard."""
    hazards = {
        instance: 1 + (market.young_hazard - 1) * math.exp((since_s - time_s) / market.young_s)
        for instance, since_s in born_s.items()
    }
    point = rng.random() * math.fsum(hazards.values())
    for instance, hazard in hazards.items():
        point -= hazard
        if point < 0:
            return instance
    return instance  # rounding left a crumb at the end
