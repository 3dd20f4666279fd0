"""The published cost rules: the published figures, and every victim set of small grids."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import enumerated_ms, small_profile

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.handout import MOST_EXACT, mean_sends
from parcae_simulator.profiles import Kind, find_profile
from parcae_simulator.published import PublishedRules
from parcae_simulator.times import Times, stage_starts

SMALL = small_profile()
RULES = PublishedRules(SMALL, capacity=12)
GRIDS = st.sampled_from([Grid(d, p) for d in range(1, 9) for p in range(1, 7) if d * p <= 8])
QUICK = settings(max_examples=150, deadline=None)


@cache
def rules_of(model: str) -> PublishedRules:
    return PublishedRules(find_profile(model))


def grid(text: str) -> Grid:
    data, pipeline = text.split("x")
    return Grid(int(data), int(pipeline))


@pytest.mark.parametrize(
    ("model", "instances", "removed", "before", "after", "cost_ms"),
    [
        ("gpt-6.7b", 28, 2, "2x12", "2x12", 44570.153),
        ("gpt-6.7b", 28, 2, "2x12", "1x16", 11474.198),
        ("gpt-6.7b", 28, 2, "2x13", "2x12", 26410.754),
        ("gpt-6.7b", 20, 0, "1x16", "1x12", 13938.389),
        ("gpt-6.7b", 20, 5, "1x16", "1x14", 38172.297),
        ("gpt-6.7b", 14, 0, "0x0", "1x13", 29786.143),
        ("gpt-1.5b", 28, 2, "3x9", "3x8", 8490.801),
        ("gpt-1.5b", 28, 2, "3x9", "2x9", 1829.340),
        ("gpt-1.5b", 24, 0, "2x12", "3x8", 8899.125),
        ("gpt-1.5b", 32, 6, "4x8", "2x13", 6244.105),
        ("gpt-1.5b", 21, 0, "2x10", "3x10", 34417.914),
        ("bert", 31, 3, "10x3", "8x3", 1785.742),
        ("bert", 32, 1, "8x4", "8x4", 11235.101),
        ("bert", 24, 4, "6x4", "10x2", 6948.300),
        ("resnet152", 30, 2, "14x2", "14x2", 13522.177),
        ("vgg19", 30, 4, "15x2", "13x2", 9532.171),
        ("vgg19", 20, 0, "5x4", "6x4", 20938.151),
    ],
)
def test_published_costs(
    model: str, instances: int, removed: int, before: str, after: str, cost_ms: float
) -> None:
    seconds = rules_of(model).change_seconds(instances, grid(before), removed, (grid(after),))
    assert seconds[0] * 1000 == pytest.approx(cost_ms, rel=1e-6)


def test_published_stages_and_transfers() -> None:
    times = Times(find_profile("gpt-6.7b"))
    assert times.send(2e9) == pytest.approx(2231.925540, rel=1e-9)
    assert times.send(0.0) == pytest.approx(0.142907)
    assert stage_starts(38, 12)[:-1] == (0, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 35)


@QUICK
@given(before=GRIDS, after=GRIDS, spare=st.integers(0, 3), removed=st.integers(0, 4))
def test_means_are_those_of_every_victim_set(
    before: Grid, after: Grid, spare: int, removed: int
) -> None:
    instances = before.workers + spare
    removed = min(removed, instances)
    found = RULES.change_seconds(instances, before, removed, (after,))[0] * 1000
    assert found == pytest.approx(enumerated_ms(SMALL, instances, before, removed, after), rel=1e-9)


@pytest.mark.parametrize("after", ["1x1", "3x2", "2x5", "1x6"])
def test_nobody_left_and_nobody_yet(after: str) -> None:
    before = Grid(2, 2)
    found = RULES.change_seconds(5, before, 5, (grid(after),))[0] * 1000
    assert found == pytest.approx(enumerated_ms(SMALL, 5, before, 5, grid(after)))
    start = RULES.change_seconds(0, NOTHING, 0, (grid(after),))[0] * 1000
    assert start == pytest.approx(enumerated_ms(SMALL, 0, NOTHING, 0, grid(after)))


@pytest.mark.parametrize("after", [Grid(1, 2), Grid(1, 5)])
def test_many_victims_are_drawn_close_to_the_exact_mean(after: Grid) -> None:
    before, most, times = Grid(4, 3), MOST_EXACT + 2, Times(SMALL)
    sends = mean_sends(before, [times.lacking(3, after.pipeline)], times.send, most)[0]
    for victims in (MOST_EXACT, most):
        kind = Kind.ADD if after.workers > before.workers - victims else Kind.REMOVE
        exact = enumerated_ms(SMALL, 12, before, victims, after) - times.restart(after, kind)
        assert sends[victims] == pytest.approx(exact, rel=1e-9 if victims <= MOST_EXACT else 0.15)


def test_an_idle_pipeline_where_nothing_is_allowed() -> None:
    rules = rules_of("gpt-6.7b")
    assert list(rules.grids(11)) == [Grid(1, 11)]
    assert rules.speed(Grid(1, 11)) == 0
    assert rules.change_seconds(12, Grid(1, 12), 1, rules.grids(11)).tolist() == [0.0]
    assert rules.change_seconds(11, Grid(1, 11), 0, (Grid(1, 12),))[0] > 20
    assert list(rules.grids(0)) == []


def test_larger_layouts_than_at_first_extend_the_tables() -> None:
    rules = PublishedRules(SMALL, capacity=4)
    few = rules.change_seconds(4, Grid(2, 2), 1, (Grid(1, 2),))
    many = rules.change_seconds(4, Grid(2, 2), 1, (Grid(1, 2), Grid(4, 2), Grid(2, 2)))
    whole = RULES.change_seconds(4, Grid(2, 2), 1, (Grid(1, 2), Grid(4, 2), Grid(2, 2)))
    assert few[0] == many[0]
    np.testing.assert_allclose(many, whole)
