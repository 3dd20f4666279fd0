"""Closed forms of the lottery, against counting every possibility and against drawing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_optimizer.liveput import liveput, replicas_left, units_of
from parcae_optimizer.lottery import (
    MOST_INSTANCES,
    dearest_in_need,
    least_survivors,
    stage_deficit,
    stage_survival,
    victims_inside,
)
from parcae_optimizer.rules import Grid


@st.composite
def lotteries(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """A small grid D×P, N and k, few enough subsets to count."""
    data, pipeline = draw(st.sampled_from([(d, p) for d in range(1, 5) for p in range(1, 5)]))
    spare = draw(st.integers(0, 3))
    instances = data * pipeline + spare
    removed = draw(st.integers(0, min(instances, 4)))
    return data, pipeline, instances, removed


def survivors(data: int, pipeline: int, instances: int, removed: int) -> Iterator[list[int]]:
    """Replicas left per stage, for every set of victims: cell r·P+s, spares behind."""
    for victims in itertools.combinations(range(instances), removed):
        alive = [data] * pipeline
        for victim in victims:
            if victim < data * pipeline:
                alive[victim % pipeline] -= 1
        yield alive


@settings(max_examples=80)
@given(lotteries())
def test_survival_is_the_share_of_subsets(lottery: tuple[int, int, int, int]) -> None:
    data, pipeline, instances, removed = lottery
    table = stage_survival(data, pipeline, instances, removed)
    least = [min(alive) for alive in survivors(*lottery)]
    for d in range(data + 1):
        share = sum(m >= d for m in least) / len(least)
        assert table[removed, d] == pytest.approx(share, abs=1e-12)
    law = least_survivors(data, pipeline, instances, removed)[removed]
    assert law == pytest.approx([least.count(d) / len(least) for d in range(data + 1)], abs=1e-12)


@settings(max_examples=60)
@given(lotteries(), st.data())
def test_deficits_and_the_dearest_stage_in_need(
    lottery: tuple[int, int, int, int], data_: st.DataObject
) -> None:
    data, pipeline, instances, removed = lottery
    wanted = data_.draw(st.integers(1, data))
    prices = data_.draw(st.lists(st.floats(0, 9), min_size=pipeline, max_size=pipeline))
    cases = list(survivors(*lottery))
    lacking = np.mean([max(0, wanted - alive[0]) for alive in cases])
    assert stage_deficit(data, instances, removed, wanted) == pytest.approx(lacking, abs=1e-12)
    dearest = np.mean(
        [
            max([c for c, a in zip(prices, alive, strict=True) if a < wanted], default=0.0)
            for alive in cases
        ]
    )
    # Which stage has which price cannot matter, as victims are drawn alike.
    found = dearest_in_need(prices, data, instances, removed)[removed, wanted]
    assert found == pytest.approx(dearest, abs=1e-9)


@settings(max_examples=60)
@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 8))
def test_victims_inside_is_hypergeometric(cells: int, spare: int, removed: int) -> None:
    instances = cells + spare
    removed = min(removed, instances)
    law = victims_inside(cells, instances, removed)
    assert law.sum(axis=1) == pytest.approx(1.0)
    counted = [
        sum(v < cells for v in victims)
        for victims in itertools.combinations(range(instances), removed)
    ]
    assert law[removed] == pytest.approx(
        [counted.count(h) / len(counted) for h in range(removed + 1)], abs=1e-12
    )


def test_closed_form_agrees_with_drawing() -> None:
    """1,000 lotteries of up to 128 instances, 2,000 draws each: within 4 standard errors."""
    chance = np.random.default_rng(20)
    draws, outside = 2000, 0
    for _ in range(1000):
        data, pipeline = (int(x) for x in chance.integers(1, 9, 2))
        instances = data * pipeline + int(chance.integers(0, 65))
        removed = int(chance.integers(0, min(instances, 16) + 1))
        wanted = int(chance.integers(1, data + 1))
        exact = stage_survival(data, pipeline, instances, removed)[removed, wanted]
        order = chance.random((draws, instances)).argpartition(min(removed, instances - 1), axis=1)
        hit = np.zeros((draws, instances), dtype=bool)
        np.put_along_axis(hit, order[:, :removed], True, axis=1)
        cells = hit[:, : data * pipeline].reshape(draws, data, pipeline)
        alive = data - cells.sum(axis=1)
        share = float((alive.min(axis=1) >= wanted).mean())
        error = np.sqrt(max(exact * (1 - exact), 1.0 / draws) / draws)
        outside += abs(share - exact) > 4 * error
    assert outside == 0


def test_a_large_lottery_stays_a_probability() -> None:
    table = stage_survival(16, 64, MOST_INSTANCES, MOST_INSTANCES)
    assert np.isfinite(table).all()
    assert table.min() >= 0
    assert table.max() <= 1
    assert (np.diff(table, axis=1) <= 1e-12).all()  # to keep more replicas is never likelier
    assert (np.diff(table[:, 1:], axis=0) <= 1e-9).all()  # nor after more victims


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 2, 8, 1), "holds nothing"),
        ((3, 3, 8, 1), "give at least 9"),
        ((1, 1, MOST_INSTANCES + 1, 1), "at most 1024"),
        ((2, 2, 4, 5), "5 of 4 instances"),
        ((2, 2, 4, -1), "-1 of 4 instances"),
    ],
)
def test_what_is_no_lottery(arguments: tuple[int, int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        stage_survival(*arguments)


# Liveput.


def test_liveput_of_one_known_loss() -> None:
    """2x2 and one spare of 5: the spare is hit with 1/5, else one replica is left."""
    assert liveput(Grid(2, 2), 5, [0.0, 1.0], [0.0, 10.0, 18.0]) == pytest.approx(
        0.2 * 18 + 0.8 * 10
    )


def test_liveput_without_losses_is_the_speed() -> None:
    assert liveput(Grid(3, 2), 6, [1.0], [0.0, 1.0, 2.0, 3.0]) == pytest.approx(3.0)


def test_fewer_replicas_may_be_faster() -> None:
    """A hole in a table of speeds: survivors run as the fastest part of them."""
    assert liveput(Grid(2, 1), 2, [1.0], [0.0, 10.0, 7.0]) == pytest.approx(10.0)


def test_deep_pipelines_survive_less() -> None:
    law = [0.0, 0.0, 1.0]
    deep = liveput(Grid(1, 4), 4, law, [0.0, 10.0])
    wide = liveput(Grid(4, 1), 4, law, [0.0, 2.5, 5.0, 7.5, 10.0])
    assert deep == 0.0
    assert wide == pytest.approx(5.0)


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2), st.data())
def test_several_gpus_vanish_as_one(
    data: int, pipeline: int, gpus: int, spare: int, draw: st.DataObject
) -> None:
    grid = Grid(data, pipeline)
    units = units_of(grid, gpus)
    instances = units.instances + spare
    removed = draw.draw(st.integers(0, min(instances, 3)))
    home = [
        _home(units_row, stage, gpus, grid)
        for units_row in range(data)
        for stage in range(pipeline)
    ]
    counts = [0] * (data + 1)
    for victims in itertools.combinations(range(instances), removed):
        alive = [data] * pipeline
        for cell, instance in enumerate(home):
            if instance in victims:
                alive[cell % pipeline] -= 1
        counts[min(alive)] += 1
    law = replicas_left(grid, instances, removed, gpus)[removed]
    assert law == pytest.approx(np.array(counts) / sum(counts), abs=1e-12)


def _home(replica: int, stage: int, gpus: int, grid: Grid) -> int:
    """The instance of a cell: consecutive stages together, or several short pipelines."""
    if grid.pipeline >= gpus:
        per_pipeline = -(-grid.pipeline // gpus)
        return replica * per_pipeline + stage // gpus
    return replica // (gpus // grid.pipeline)


def test_an_instance_has_a_gpu() -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        units_of(Grid(1, 1), 0)
