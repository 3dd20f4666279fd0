"""Costs of live migration: what a change of layout is expected to pause."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from planning_helpers import make_layout, make_profile

from parcae_api.planning import PlanRequest
from parcae_optimizer.measured import MeasuredRules
from parcae_optimizer.rules import NOTHING, Grid

REGROUP_S = 0.5
MB = 1_000_000


def rules(
    *, layers: int = 4, rollback_s: float = 0.0, most: int = 8, **bytes_: int
) -> MeasuredRules:
    """Layers of 100 MB over a link of 1 GB/s: 0.1 s each."""
    sizes = {"state_bytes": 100 * MB, **bytes_}
    profile = make_profile([0.1] * layers, **sizes).model_copy(
        update={"regroup_seconds": REGROUP_S}
    )
    request = PlanRequest(profile=profile, num_workers=most, rollback_seconds=rollback_s)
    return MeasuredRules.of(request, most)


def cost(found: MeasuredRules, instances: int, before: Grid, removed: int, after: Grid) -> float:
    return float(found.change_seconds(instances, before, removed, [after])[0])


def test_the_same_layout_without_a_loss_costs_nothing() -> None:
    assert cost(rules(), 6, Grid(2, 2), 0, Grid(2, 2)) == 0.0


def test_a_loss_among_the_spares_costs_nothing() -> None:
    """2x1 on 3 instances: one of three victims is the spare."""
    expected = 2 / 3 * (REGROUP_S + 0.4)  # else a spare takes the place, and gets all four layers
    assert cost(rules(), 3, Grid(2, 1), 1, Grid(2, 1)) == pytest.approx(expected)


def test_fewer_replicas_regroup_only() -> None:
    assert cost(rules(), 4, Grid(2, 2), 1, Grid(1, 2)) == pytest.approx(REGROUP_S)


def test_more_replicas_get_a_whole_stage() -> None:
    assert cost(rules(), 4, Grid(1, 2), 0, Grid(2, 2)) == pytest.approx(REGROUP_S + 0.2)


def test_another_depth_moves_what_the_survivors_lack() -> None:
    """From stages of two layers to stages of one: whoever had both already holds either."""
    assert cost(rules(), 4, Grid(2, 2), 0, Grid(1, 4)) == pytest.approx(REGROUP_S)
    assert cost(rules(), 4, Grid(1, 4), 0, Grid(2, 2)) == pytest.approx(REGROUP_S + 0.1)
    # Two newcomers have nothing.
    assert cost(rules(), 4, Grid(1, 2), 0, Grid(1, 4)) == pytest.approx(REGROUP_S + 0.1)


def test_all_start_from_nothing() -> None:
    assert cost(rules(), 4, NOTHING, 0, Grid(2, 2)) == pytest.approx(REGROUP_S + 0.2)


def test_a_stage_without_a_replica_costs_a_rollback() -> None:
    """1x2 on 2 instances: any loss takes a stage."""
    shallow = cost(rules(rollback_s=9.0), 2, Grid(1, 2), 1, Grid(1, 1))
    assert shallow == pytest.approx(cost(rules(), 2, Grid(1, 2), 1, Grid(1, 1)) + 9.0)
    assert cost(rules(rollback_s=9.0), 4, Grid(2, 2), 1, Grid(1, 2)) == pytest.approx(REGROUP_S)


def test_expected_cost_is_the_mean_over_all_victims() -> None:
    found = rules(layers=5)
    for before, after, removed in itertools.product(
        [Grid(2, 2), Grid(3, 2), Grid(3, 1)], [Grid(2, 2), Grid(3, 2), Grid(2, 1)], [1, 2]
    ):
        instances = 7
        if before.pipeline != after.pipeline or after.data > before.data:
            continue
        stages = np.diff(found.layouts[before].boundaries) * 0.1
        costs = []
        for victims in itertools.combinations(range(instances), removed):
            alive = [before.data] * before.pipeline
            for victim in victims:
                if victim < before.workers:
                    alive[victim % before.pipeline] -= 1
            needy = [s for s, a in zip(stages, alive, strict=True) if a < after.data]
            untouched = before == after and min(alive) == before.data
            costs.append(0.0 if untouched else REGROUP_S + max(needy, default=0.0))
        assert cost(found, instances, before, removed, after) == pytest.approx(np.mean(costs))


def test_a_table_holds_the_rows_of_single_questions() -> None:
    found = rules()
    after = found.grids(8)
    for before in [NOTHING, *after]:
        instances = max(8, before.workers)
        table = found.change_table(instances, before, 3, after)
        for k in range(4):
            row = found.change_seconds(instances, before, k, after)
            assert table[k] == pytest.approx(row)


def test_measured_steps_correct_speeds_and_leave_costs() -> None:
    found = rules()
    measured = found.as_measured({"2x1": 9.0}, 32)
    assert measured.speed(Grid(2, 1)) == pytest.approx(32 / 9.0)
    scale = found.speed(Grid(2, 1)) / measured.speed(Grid(2, 1))
    assert measured.speed(Grid(1, 2)) == pytest.approx(found.speed(Grid(1, 2)) / scale)
    assert found.as_measured({}, 32) is found


# What is known now is not drawn.


def test_survivors_share_the_sending() -> None:
    layout = make_layout(4, (0, 2, 4))
    assert rules().refill_seconds(layout, [4, 4]) == 0.0
    assert rules().refill_seconds(layout, [3, 4]) == pytest.approx(0.2)
    assert rules().refill_seconds(layout, [1, 4]) == pytest.approx(0.6)  # three copies in a row
    assert rules().refill_seconds(layout, [2, 4]) == pytest.approx(0.2)
