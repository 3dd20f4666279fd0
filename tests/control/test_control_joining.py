"""Instances that come seconds apart cause one change, and nobody is waited for in vain for long."""

from __future__ import annotations

import pytest
from control_world import ToldPlanner, World, grid_of
from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_api.history import History
from parcae_api.plan import Plan, PlanReason
from parcae_api.planning import Planner
from parcae_operator.actions import Hold, PublishPlan
from parcae_operator.attention import LONGEST_S as LOOK_S
from parcae_operator.attention import Attention
from parcae_operator.controller import decide
from parcae_operator.joining import LONGEST_S, Joiners
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.reactive import ReactivePlanner
from parcae_predictor import HazardPredictor


class Watcher:
    """A world of two that train, and an operator that remembers what waiting cost."""

    def __init__(self, planner: Planner | None = None) -> None:
        self.world = World(most=9).training(2, 1, "a", "b")
        self.joiners = Joiners()
        self.attention = Attention(60.0)
        self.planner = planner or LiveputPlanner(HazardPredictor())
        self.look()

    def look(self, after_s: float = 0.0, *, asked: bool = True) -> Plan | Hold | None:
        """What a turn of the loop decides. ``asked``: whatever was asked a moment ago."""
        seen = self.joiners.on(self.world.wait(after_s).observe())
        if not asked:
            seen = self.attention.on(seen)
        actions = decide(seen, self.planner)
        held = next((action for action in actions if isinstance(action, Hold)), None)
        if held or not seen.more_of_the_same:
            self.joiners.decided(held)
        if held:
            self.attention.remind(held.until_unix_s)
        plans = [action.plan for action in actions if isinstance(action, PublishPlan)]
        return plans[0] if plans else held


def held(watcher: Watcher, after_s: float = 0.0) -> Hold:
    found = watcher.look(after_s)
    assert isinstance(found, Hold)
    return found


def test_whoever_comes_alone_joins_at_once() -> None:
    watcher = Watcher()
    watcher.world.ready("c")
    plan = watcher.look()
    assert isinstance(plan, Plan)
    assert plan.reason is PlanReason.JOIN


def test_two_that_come_shortly_after_each_other_join_together() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    assert held(watcher).why == (
        "3x1 could train, but another instance starts: one change for all, or in 0.3 s without "
        "them, when the wait has cost as much as a change"
    )
    watcher.world.ready("d")
    plan = watcher.look(0.2)
    assert isinstance(plan, Plan)
    assert {"c", "d"} <= {name for row in grid_of(plan) for name in row}


def test_it_is_waited_no_longer_than_a_change_is_worth() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    left_s = held(watcher).until_unix_s - watcher.world.now
    # A tenth of a second in which two stand still, against a third that would have trained.
    assert left_s == pytest.approx(0.3, rel=0.01)
    held(watcher, 0.9 * left_s)
    assert isinstance(watcher.look(0.2 * left_s), Plan)


def test_it_is_never_waited_for_longer_than_a_start_takes() -> None:
    watcher = Watcher(ToldPlanner([1.0, 1.0, 10.0, 10.001], pause_s=100.0))
    watcher.world.ready("c").starting("d")
    assert held(watcher).until_unix_s == pytest.approx(watcher.world.now + LONGEST_S)
    held(watcher, 0.9 * LONGEST_S)
    assert isinstance(watcher.look(0.2 * LONGEST_S), Plan)


def test_whoever_was_waited_for_in_vain_is_so_once_only() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("stuck")
    held(watcher)
    watcher.look(1.0)
    watcher.world.publish()
    watcher.world.obey().train(1)
    watcher.world.ready("e")
    assert isinstance(watcher.look(1.0), Plan)
    watcher.world.starting("f")  # but another is worth it
    held(watcher)


def test_newcomers_do_not_begin_the_wait_anew() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("stuck")
    held(watcher)
    looks = 0
    for number in range(20):
        name = f"spare{number}"
        watcher.world.ready(name)
        looks += 1
        if isinstance(watcher.look(0.14), Plan):
            break
        del watcher.world.hands[name]
    assert looks <= 3


def test_while_a_plan_forms_nobody_could_join_and_no_wait_is_counted() -> None:
    watcher = Watcher()
    watcher.world.ready("c")
    watcher.world.publish()
    watcher.world.ready("e").starting("d")
    watcher.look(10.0)
    watcher.world.obey().train(1)
    held(watcher, 1.0)


def test_an_interval_that_ends_does_not_end_the_wait() -> None:
    watcher = Watcher()
    watcher.world.history = History(interval_s=60.0)
    watcher.world.ready("c").starting("d")
    assert isinstance(watcher.look(asked=False), Hold)
    assert watcher.look(0.1, asked=False) is None  # more of the same
    watcher.world.interval_ended = True
    assert isinstance(watcher.look(0.1, asked=False), Hold)
    watcher.world.interval_ended = False
    assert isinstance(watcher.look(0.2, asked=False), Plan)  # reminded, though nothing changed


def test_those_that_wait_for_a_node_are_not_waited_for() -> None:
    watcher = Watcher()
    watcher.world.ready("c").pending("d")
    assert isinstance(watcher.look(), Plan)


def test_those_that_are_not_on_the_board_are_not_waited_for() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d", on_board=False)  # or it died with its node just now
    assert isinstance(watcher.look(), Plan)


def test_one_that_starts_and_is_about_to_go_is_not_waited_for() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d").notice("d")
    assert isinstance(watcher.look(), Plan)


def test_one_that_dies_while_it_starts_ends_the_wait() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    watcher.world.lose("d")
    assert isinstance(watcher.look(), Plan)


@pytest.mark.parametrize("trouble", ["loss", "notice"])
def test_a_change_that_must_be_waits_for_nobody(trouble: str) -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    watcher.world.lose("b") if trouble == "loss" else watcher.world.notice("b")
    plan = watcher.look()
    assert isinstance(plan, Plan)
    assert grid_of(plan) == [["a"], ["c"]]


def test_without_a_cost_nobody_waits() -> None:
    watcher = Watcher(ReactivePlanner())  # as when the planner is down
    watcher.world.ready("c").starting("d")
    assert isinstance(watcher.look(), Plan)


def test_another_operator_begins_the_wait_anew_once() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    watcher.joiners = Joiners()
    held(watcher, 0.2)
    assert isinstance(watcher.look(0.4), Plan)


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_a_clock_that_is_set_ends_the_wait(step_s: float) -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    assert isinstance(watcher.look(step_s), Plan)


@settings(max_examples=30)
@given(
    speeds=st.lists(st.floats(0.1, 100.0), min_size=9, max_size=9).map(sorted),
    pause_s=st.floats(0.01, 30.0),
    gaps_s=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=15),
    comers=st.lists(st.sampled_from("cdefghi"), min_size=15, max_size=15),
)
def test_a_plan_loses_no_more_by_waiting_than_a_change_costs(
    speeds: list[float], pause_s: float, gaps_s: list[float], comers: list[str]
) -> None:
    watcher = Watcher(ToldPlanner(speeds, pause_s))
    watcher.world.starting("stuck")
    now, foregone = speeds[2], 0.0
    decided: Plan | Hold | None = None
    for gap_s, comer in zip(gaps_s, comers, strict=False):
        if isinstance(decided, Hold):  # the loop looks again in time, whatever else wakes it
            gap_s = min(gap_s, max(0.0, decided.until_unix_s - watcher.world.now) + 1e-6)
            foregone += gap_s * decided.foregone_samples_per_second
        watcher.world.ready(comer)
        decided = watcher.look(gap_s)
        if isinstance(decided, Plan):
            break
    assert foregone <= pause_s * now + 1e-5 * speeds[-1]
    if isinstance(decided, Hold):
        assert isinstance(watcher.look(1.01 * LONGEST_S), Plan)


def test_what_was_held_is_looked_at_again_in_time() -> None:
    world, attention = World().training(1, 2, "a", "b", spare=["c"]), Attention(60.0)
    assert not attention.on(world.observe()).more_of_the_same
    attention.remind(world.now + 1.0)
    assert attention.on(world.wait(0.5).observe()).more_of_the_same
    assert not attention.on(world.wait(0.6).observe()).more_of_the_same
    assert attention.on(world.wait(LOOK_S - 0.1).observe()).more_of_the_same


def test_whoever_starts_is_a_reason_to_look_again() -> None:
    world, attention = World().training(1, 2, "a", "b", spare=["c"]), Attention(60.0)
    joiners = Joiners()
    attention.on(joiners.on(world.observe()))
    assert not attention.on(joiners.on(world.starting("d").observe())).more_of_the_same
    assert attention.on(joiners.on(world.observe())).more_of_the_same
