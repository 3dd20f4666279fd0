"""Placement: never a byte more than the best of all assignments, and nobody moves for nothing."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_helpers import make_layout, make_profile

from parcae_api.plan import Layout
from parcae_api.profile import Profile
from parcae_optimizer.placement import bytes_to_move, place

NAMES = [f"w{index}" for index in range(7)]


def fewest_bytes(
    layout: Layout, profile: Profile, workers: Sequence[str], held: Mapping[str, range]
) -> int:
    p = layout.configuration.pipeline
    return min(
        bytes_to_move(layout, profile, [order[i : i + p] for i in range(0, len(order), p)], held)
        for order in itertools.permutations(workers, layout.configuration.workers)
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Layout, Profile, list[str], dict[str, range]]:
    layers = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(0, 5), min_size=layers, max_size=layers))
    p = draw(st.integers(1, min(3, layers)))
    inner = (
        draw(st.sets(st.integers(1, layers - 1), min_size=p - 1, max_size=p - 1)) if p > 1 else ()
    )
    layout = make_layout(draw(st.integers(1, 5 // p)), [0, *sorted(inner), layers])
    spare = draw(st.integers(0, 1))
    workers = NAMES[: layout.configuration.workers + spare]
    held = {}
    for worker in workers:
        first, last = sorted(draw(st.tuples(st.integers(0, layers), st.integers(0, layers))))
        if draw(st.booleans()):
            held[worker] = range(first, last)
    return layout, make_profile([0.1] * layers, state_bytes=sizes), workers, held


@given(cases())
@settings(max_examples=200, deadline=None)
def test_no_assignment_moves_less(
    case: tuple[Layout, Profile, list[str], dict[str, range]],
) -> None:
    layout, profile, workers, held = case
    grid = place(layout, profile, workers, held)
    named = [worker for row in grid for worker in row]
    assert len(set(named)) == layout.configuration.workers
    assert set(named) <= set(workers)
    assert bytes_to_move(layout, profile, grid, held) == fewest_bytes(*case)
    assert place(layout, profile, workers, held) == grid


def test_everybody_stays_when_nothing_has_to_move() -> None:
    layout = make_layout(3, [0, 2, 4])
    profile = make_profile([0.1] * 4, state_bytes=100)
    before = (("c", "f"), ("a", "d"), ("e", "b"))
    held = {worker: layout.layers(stage) for row in before for stage, worker in enumerate(row)}
    members = [worker for row in before for worker in row]
    assert place(layout, profile, [*members, "new"], held) == before


def test_a_newcomer_takes_the_empty_place_and_nobody_else_moves() -> None:
    layout = make_layout(2, [0, 2, 4])
    profile = make_profile([0.1] * 4, state_bytes=100)
    held = {"a": range(2), "d": range(2, 4), "c": range(2)}
    grid = place(layout, profile, ["a", "c", "d", "new"], held)
    assert grid == (("a", "d"), ("c", "new"))
    assert bytes_to_move(layout, profile, grid, held) == 200


def test_fewer_stages_are_given_to_those_who_hold_most_of_them() -> None:
    layout = make_layout(1, [0, 3, 4])
    profile = make_profile([0.1] * 4, state_bytes=[10, 10, 50, 10])
    held = {"a": range(2), "b": range(2, 3), "c": range(3, 4)}
    assert place(layout, profile, ["a", "b", "c"], held) == (("b", "c"),)


def test_among_equals_the_earlier_is_taken() -> None:
    layout = make_layout(1, [0, 1])
    profile = make_profile([0.1], state_bytes=10**13)  # whose bytes dwarf any order
    assert place(layout, profile, ["a", "b", "c"], {}) == (("a",),)
    assert place(layout, profile, ["c", "b", "a"], {}) == (("c",),)
    assert place(layout, profile, ["a", "b", "c"], {"b": range(1)}) == (("b",),)


def test_too_few_workers() -> None:
    with pytest.raises(ValueError, match="3 workers cannot fill 4 cells"):
        place(make_layout(2, [0, 1, 2]), make_profile([0.1, 0.1]), ["a", "b", "c"], {})


def test_five_hundred_workers_are_placed_within_a_second() -> None:
    layout = make_layout(25, [*range(0, 100, 5), 100], micro_batches=512)
    profile = make_profile([0.1] * 100, state_bytes=10**8, micro_batches=512)
    workers = [f"w{index}" for index in range(512)]
    held = {worker: layout.layers(index % 17) for index, worker in enumerate(workers)}
    started = time.perf_counter()
    grid = place(layout, profile, workers, held)
    assert time.perf_counter() - started < 1.0  # 0.03 s on an idle machine
    assert len({worker for row in grid for worker in row}) == 500
