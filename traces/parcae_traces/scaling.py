"""Scaling a recording down to fewer instances, so that what is left is still the recording.

A recording that asks for C instances is C *slots*: when an instance is lost, its slot is free
until a newcomer takes it. Scaling to N keeps N whole slots and drops the rest. Every kept
instance keeps its own times, so instances that were taken together are still taken together;
thinning or rescaling the counts would break such batches up.

Which slots stay decides how well the kept count follows N/C of the recorded one. Newcomers take
the lowest free slot, so slots differ in how long they are occupied. Ordered by that and divided
into N strata, each stratum gives one slot, drawn by the seed. Of ``NUM_DRAWS`` such draws the one
stays whose count deviates least from N/C of the recorded count (mean absolute deviation over
time).
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace

from parcae_api.errors import InputError
from parcae_traces.model import Life, Trace, ordered

NUM_DRAWS = 20

Slot = tuple[Life, ...]
"""The instances that held one place of the capacity, one after the other."""


def slots_of(trace: Trace) -> tuple[Slot, ...]:
    """Chain the lives of a trace into ``capacity`` slots; some may be empty."""
    slots: list[list[Life]] = [[] for _ in range(trace.capacity)]
    free = list(range(trace.capacity))
    held: list[tuple[float, int]] = []
    for life in trace.lives:
        while held and held[0][0] <= life.joined_s:
            heapq.heappush(free, heapq.heappop(held)[1])
        slot = heapq.heappop(free)
        slots[slot].append(life)
        heapq.heappush(held, (math.inf if life.removed_s is None else life.removed_s, slot))
    return tuple(tuple(slot) for slot in slots)


def scale(trace: Trace, instances: int, seed: int = 0) -> Trace:
    """Keep ``instances`` slots of the trace, chosen by ``seed``; see the module's text.

    Raises:
        InputError: the trace has no such number of slots.
    """
    if not 1 <= instances <= trace.capacity:
        raise InputError(
            f"cannot scale {trace.name} to {instances} instances; give a number from 1 to its "
            f"capacity, {trace.capacity}"
        )
    if instances == trace.capacity:
        return trace
    rng = random.Random(seed)
    slots = sorted(slots_of(trace), key=lambda slot: _occupied_s(slot, trace.duration_s))
    draws = [_draw(slots, instances, rng) for _ in range(NUM_DRAWS)]
    kept = min(draws, key=lambda draw: _deviation(trace, draw))
    return replace(
        trace,
        name=f"{trace.name}-{instances}",
        source=f"{trace.source}; {instances} of its {trace.capacity} slots (seed {seed})",
        capacity=instances,
        lives=ordered(life for slot in kept for life in slot),
    )


def _draw(slots: Sequence[Slot], num_kept: int, rng: random.Random) -> list[Slot]:
    """One slot of each stratum. Only ``random()`` is promised to be the same in every Python."""
    ends = [stratum * len(slots) // num_kept for stratum in range(num_kept + 1)]
    return [
        slots[first + int(rng.random() * (end - first))] for first, end in itertools.pairwise(ends)
    ]


def _occupied_s(slot: Slot, end_s: float) -> float:
    return math.fsum(life.seconds_until(end_s) for life in slot)


def _deviation(trace: Trace, kept: Sequence[Slot]) -> float:
    """Seconds · instances between the kept count and its share of the recorded one."""
    share = len(kept) / trace.capacity
    changes: dict[float, float] = {0.0: 0.0}
    for sign, lives in ((-share, trace.lives), (1.0, (life for slot in kept for life in slot))):
        for life in lives:
            changes[life.joined_s] = changes.get(life.joined_s, 0.0) + sign
            if life.removed_s is not None:
                changes[life.removed_s] = changes.get(life.removed_s, 0.0) - sign
    times = sorted(changes)
    excess = total = 0.0
    for time_s, next_s in zip(times, [*times[1:], trace.duration_s], strict=True):
        excess += changes[time_s]
        total += abs(excess) * (next_s - time_s)
    return total
