"""How long layers move, against what each worker lacks once all have their places."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from planning_helpers import make_layout, make_profile

from parcae_api.plan import Layout
from parcae_api.planning import PlanRequest
from parcae_optimizer.measured import MeasuredRules
from parcae_optimizer.moving import MOST_PLACED, move_seconds, shared_seconds
from parcae_optimizer.placement import place
from parcae_optimizer.rules import Grid

LAYERS = 6
SECONDS = np.arange(LAYERS + 1, dtype=np.float64)  # each layer takes a second


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    stages = draw(st.integers(1, LAYERS))
    inner = draw(st.sets(st.integers(1, LAYERS - 1), min_size=stages - 1, max_size=stages - 1))
    return make_layout(draw(st.integers(1, 4)), [0, *sorted(inner), LAYERS])


def moved(current: Layout, left: Sequence[int], target: Layout) -> float:
    shared = shared_seconds(SECONDS, current.boundaries, target.boundaries)
    return move_seconds(shared, left, target.configuration.data)


@given(layouts(), layouts(), st.data())
def test_it_is_what_the_hungriest_lacks_or_the_busiest_send(
    current: Layout, target: Layout, data: st.DataObject
) -> None:
    replicas = current.configuration.data
    left = [data.draw(st.integers(1, replicas)) for _ in range(current.configuration.pipeline)]
    held = {
        f"{stage}/{number}": current.layers(stage)
        for stage, here in enumerate(left)
        for number in range(here)
    }
    new = [f"new/{n}" for n in range(target.configuration.workers)]
    profile = make_profile([0.1] * LAYERS, state_bytes=1)
    grid = place(target, profile, [*held, *new], held)
    lacks = [
        (set(target.layers(stage)) - set(held.get(worker, ())), worker)
        for row in grid
        for stage, worker in enumerate(row)
    ]
    sent = [
        sum(len(missing & set(current.layers(stage))) for missing, _ in lacks) / here
        for stage, here in enumerate(left)
    ]
    hungriest = max(len(missing) for missing, _ in lacks)
    told = moved(current, left, target)
    # Where several placements move as few bytes in all, one may be a layer hungrier.
    assert abs(told - max(hungriest, *sent, 0)) <= max(1.0, 1.0 / min(left))
    assert (told == 0) == (hungriest == 0)


def test_a_stage_that_few_hold_is_sent_in_turns() -> None:
    whole, thirds = make_layout(1, [0, 6]), make_layout(3, [0, 3, 6])
    # One stays; five newcomers get half each from the only one that has anything.
    assert moved(whole, [1], thirds) == 5 * 3.0
    assert moved(make_layout(2, [0, 6]), [2], thirds) == 4 * 3.0 / 2


def test_more_replicas_than_nearby_holders_have_far_to_go() -> None:
    threes, halves = make_layout(3, [0, 2, 4, 6]), make_layout(4, [0, 3, 6])
    # Three lack the sixth beside their third; the fourth of each half comes from the middle.
    assert moved(threes, [3, 3, 3], halves) == 2.0
    # The only holder of the first third sends it to the three others that take the first half.
    assert moved(threes, [1, 3, 3], halves) == 3 * 2.0


@given(st.integers(2, 4), st.integers(1, 3))
def test_nothing_moves_to_fewer_replicas_of_the_same_cut(replicas: int, fewer: int) -> None:
    halves = make_layout(replicas, [0, 3, 6])
    assert moved(halves, [replicas, replicas], make_layout(min(fewer, replicas), [0, 3, 6])) == 0


def test_very_many_workers_are_told_at_least_what_a_stage_lacks() -> None:
    profile = make_profile([0.1] * 8, state_bytes=10**9, micro_batches=256)
    most = 2 * MOST_PLACED
    rules = MeasuredRules.of(PlanRequest(profile=profile, num_workers=most), most)
    for before, after in itertools.product(
        [Grid(100, 2), Grid(60, 4)], [Grid(32, 8), Grid(128, 2)]
    ):
        current, target = rules.layouts[before], rules.layouts[after]
        left = (before.data,) * before.pipeline
        shared = shared_seconds(np.arange(9.0), current.boundaries, target.boundaries)
        told = rules.move_seconds(current, target, left)
        assert 0 < told <= move_seconds(shared, left, after.data) + 1e-9
