"""Recordings that count instances without naming them become instances by one rule.

A fall of the count by k removes k instances together, and a rise by k adds k: batches stay
batches, and no more is moved than the count tells. Who leaves is drawn evenly from those that
are there, with a fixed seed: in the recordings that do name their instances, a removed one is on
average as old as the others (mean rank by age 0.52 in p3 and 0.56 in g4dn, 0 being the oldest
and 1 the youngest), so neither oldest first nor newest first would do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from parcae_traces.model import Life
from parcae_traces.roster import Roster


def lives_of_counts(counts: Iterable[tuple[float, int]]) -> tuple[Life, ...]:
    """Make instances of a step function.

    Args:
        counts: (time in seconds, instances from then on), in order of time; of several at one
            time the last counts.
    """
    steps = dict(counts)
    rng = random.Random(0)
    roster = Roster()
    for time_s, count in steps.items():
        present = list(roster.present)
        for number in range(len(present), count):
            roster.join(time_s, (time_s, number))
        for _ in range(len(present) - count):
            roster.remove(time_s, present.pop(int(rng.random() * len(present))))
    return roster.lives()
