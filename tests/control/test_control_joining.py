"""Instances that come seconds apart cause one change, and nobody is waited for in vain for long."""

from __future__ import annotations

import pytest
from control_world import World, grid_of
from hypothesis import given
from hypothesis import strategies as st

from parcae_api.plan import Plan, PlanReason
from parcae_api.planning import Alternative, PlanAnswer
from parcae_operator.actions import Hold, PublishPlan
from parcae_operator.attention import LONGEST_S, Attention
from parcae_operator.controller import decide
from parcae_operator.joining import Joiners, hold
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.reactive import ReactivePlanner
from parcae_predictor import HazardPredictor


class Watcher:
    """A world of two that train, and an operator that remembers who came when."""

    def __init__(self) -> None:
        self.world = World(most=6).training(2, 1, "a", "b")
        self.joiners = Joiners()
        self.planner = LiveputPlanner(HazardPredictor())
        self.look()

    def look(self, after_s: float = 0.0) -> Plan | Hold | None:
        seen = self.joiners.on(self.world.wait(after_s).observe())
        for action in decide(seen, self.planner):
            if isinstance(action, PublishPlan):
                return action.plan
            if isinstance(action, Hold):
                return action
        return None


def test_whoever_comes_alone_joins_at_once() -> None:
    watcher = Watcher()
    watcher.world.ready("c")
    plan = watcher.look()
    assert isinstance(plan, Plan)
    assert plan.reason is PlanReason.JOIN


def test_two_that_come_shortly_after_each_other_join_together() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held = watcher.look()
    assert isinstance(held, Hold)
    assert held.why == (
        "3x1 could train, but another instance starts: all change at once, "
        "or after 0.3 s, when waiting has cost as much as a change"
    )
    watcher.world.ready("d")
    plan = watcher.look(0.2)
    assert isinstance(plan, Plan)
    assert {"c", "d"} <= {name for row in grid_of(plan) for name in row}


def test_it_is_waited_no_longer_than_a_change_is_worth() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held = watcher.look()
    assert isinstance(held, Hold)
    left_s = held.until_unix_s - watcher.world.now
    # A tenth of a second in which two stand still, against a third that would have trained.
    assert left_s == pytest.approx(0.3, rel=0.01)
    assert isinstance(watcher.look(0.9 * left_s), Hold)
    assert isinstance(watcher.look(0.2 * left_s), Plan)


def test_one_that_stood_by_for_long_waits_with_the_next() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    watcher.look(100.0)
    watcher.world.ready("e")
    assert isinstance(watcher.look(), Hold)


def test_those_that_wait_for_a_node_are_not_waited_for() -> None:
    watcher = Watcher()
    watcher.world.ready("c").pending("d")
    assert isinstance(watcher.look(), Plan)


def test_one_that_starts_and_is_about_to_go_is_not_waited_for() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d").notice("d")
    assert isinstance(watcher.look(), Plan)


def test_one_that_dies_while_it_starts_ends_the_wait() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    assert isinstance(watcher.look(), Hold)
    watcher.world.lose("d")
    assert isinstance(watcher.look(), Plan)


@pytest.mark.parametrize("trouble", ["loss", "notice"])
def test_a_change_that_must_be_waits_for_nobody(trouble: str) -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    assert isinstance(watcher.look(), Hold)
    watcher.world.lose("b") if trouble == "loss" else watcher.world.notice("b")
    plan = watcher.look()
    assert isinstance(plan, Plan)
    assert grid_of(plan) == [["a"], ["c"]]


def test_without_a_cost_nobody_waits() -> None:
    watcher = Watcher()
    watcher.planner = ReactivePlanner()  # type: ignore[assignment]  # as when the planner is down
    watcher.world.ready("c").starting("d")
    assert isinstance(watcher.look(), Plan)


def test_a_clock_that_is_set_back_ends_the_wait() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    assert isinstance(watcher.look(), Hold)
    assert isinstance(watcher.look(-3600.0), Plan)


@given(
    pause_s=st.floats(0.01, 100.0),
    now=st.floats(0.1, 1000.0),
    gain=st.floats(0.001, 1000.0),
    gaps_s=st.lists(st.floats(0.0, 60.0), min_size=1, max_size=8),
)
def test_waiting_never_costs_more_than_a_change_for_each_that_came(
    pause_s: float, now: float, gain: float, gaps_s: list[float]
) -> None:
    world = World(most=20).training(2, 1, "a", "b").starting("z")
    joiners = Joiners()
    answer = PlanAnswer(
        layout=world.ready("c0").next_plan().layout,  # type: ignore[union-attr]
        samples_per_second=now + gain,
        pause_seconds=pause_s,
        alternatives=(
            Alternative(
                configuration="2x1",
                samples_per_second=now,
                liveput_samples_per_second=now,
                pause_seconds=0.0,
            ),
        ),
        why="a test",
    )
    assert world.plan is not None
    foregone = 0.0
    for number, gap_s in enumerate(gaps_s):
        seen = joiners.on(world.ready(f"c{number}").observe())
        held = hold(seen, world.plan, answer)
        if held is None:
            break
        left_s = min(gap_s, held.until_unix_s - world.now)
        foregone += left_s * gain
        world.wait(gap_s)
        if hold(joiners.on(world.observe()), world.plan, answer) is None:
            break
    assert foregone <= len(gaps_s) * pause_s * now * 1.001


def test_what_was_held_is_looked_at_again_in_time() -> None:
    world, attention = World().training(1, 2, "a", "b", spare=["c"]), Attention(60.0)
    assert not attention.on(world.observe()).more_of_the_same
    attention.remind(world.now + 1.0)
    assert attention.on(world.wait(0.5).observe()).more_of_the_same
    assert not attention.on(world.wait(0.6).observe()).more_of_the_same
    assert attention.on(world.wait(LONGEST_S - 0.1).observe()).more_of_the_same


def test_whoever_starts_is_a_reason_to_look_again() -> None:
    world, attention = World().training(1, 2, "a", "b", spare=["c"]), Attention(60.0)
    attention.on(world.observe())
    assert not attention.on(world.starting("d").observe()).more_of_the_same
    assert attention.on(world.observe()).more_of_the_same
