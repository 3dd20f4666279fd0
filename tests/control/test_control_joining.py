"""Instances that come seconds apart cause one change, and nobody is waited for in vain for long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from control_world import ToldPlanner, World, grid_of, make_layout, make_profile
from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_api.history import History
from parcae_api.plan import Plan, PlanReason
from parcae_api.planning import Planner, PlanRequest
from parcae_operator.actions import Hold, PublishPlan
from parcae_operator.attention import LONGEST_S as LOOK_S
from parcae_operator.attention import Attention
from parcae_operator.controller import decide
from parcae_operator.joining import LONGEST_S, Joiners, hold
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.reactive import ReactivePlanner
from parcae_predictor import HazardPredictor


class Watcher:
    """A world of two that train, and what the loop remembers of it from turn to turn."""

    def __init__(self, planner: Planner | None = None) -> None:
        self.world = World(most=9).training(2, 1, "a", "b")
        self.joiners = Joiners()
        self.attention = Attention(60.0)
        self.planner = planner or LiveputPlanner(HazardPredictor())
        self.in_force: Hold | None = None
        self.look()

    def look(self, after_s: float = 0.0, *, board_away: bool = False) -> Plan | Hold | None:
        """What a turn of the loop decides; what is in force, where nobody is asked."""
        seen = self.world.wait(after_s).observe()
        if board_away:
            members = frozenset(worker.partition("/")[0] for worker in seen.plan.workers)  # type: ignore[union-attr]
            seen = replace(seen, agents={}, awaited=members)
        seen = self.attention.on(self.joiners.on(seen))
        actions = decide(seen, self.planner)
        held = next((action for action in actions if isinstance(action, Hold)), None)
        if held or not seen.more_of_the_same:
            self.in_force = held
            self.joiners.decided(seen, held)
        if held:
            self.attention.remind(held.until_unix_s)
        plans = [action.plan for action in actions if isinstance(action, PublishPlan)]
        return plans[0] if plans else self.in_force


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


def test_whoever_was_waited_for_when_a_loss_came_is_worth_it_still() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    watcher.world.lose("b")
    assert isinstance(watcher.look(0.1), Plan)
    watcher.world.publish()
    watcher.world.obey().train(1)
    watcher.world.ready("e")
    held(watcher)


def test_a_wait_that_is_broken_off_goes_on_where_it_was() -> None:
    planner = ToldPlanner([0.0, 1.0, 2.0, 3.0], pause_s=1.0)
    watcher = Watcher(planner)
    watcher.world.ready("c").starting("stuck")
    held(watcher)
    planner.keeps = True
    watcher.world.starting("d")
    assert watcher.look(1.5) is None
    planner.keeps = False
    watcher.world.lose("d")
    held(watcher, 30.0)
    assert isinstance(watcher.look(0.6), Plan)


def test_a_board_that_was_away_gives_no_time_back() -> None:
    watcher = Watcher(ToldPlanner([0.0, 1.0, 2.0, 3.0], pause_s=1.0))
    watcher.world.ready("c").starting("stuck")
    held(watcher)
    assert watcher.look(1.5, board_away=True) is None
    held(watcher, 10.0)
    assert isinstance(watcher.look(0.6), Plan)


def test_a_board_that_was_away_makes_nobody_worth_it_again() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("stuck")
    held(watcher)
    watcher.look(1.0)
    watcher.world.publish()
    watcher.world.obey().train(1)
    watcher.look(1.0)
    watcher.look(1.0, board_away=True)
    watcher.world.ready("e")
    assert isinstance(watcher.look(1.0), Plan)


def test_a_better_layout_of_as_many_workers_waits_for_nobody() -> None:
    watcher = Watcher()
    seen = replace(watcher.world.observe(), starting=frozenset("d"))
    assert seen.plan is not None
    faster = ToldPlanner([0.0, 1.0, 2.0], pause_s=1.0).plan(
        PlanRequest(profile=make_profile(6), num_workers=2)
    )
    answer = faster.model_copy(update={"layout": make_layout(1, 2, 6), "samples_per_second": 3.0})
    assert hold(seen, seen.plan, answer) is None
    larger = answer.model_copy(update={"layout": make_layout(3, 1, 6)})
    assert hold(seen, seen.plan, larger) is not None


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
    held(watcher)
    watcher.world.interval_ended = True
    held(watcher, 0.1)
    watcher.world.interval_ended = False
    assert isinstance(watcher.look(0.3), Plan)


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
    watcher.joiners, watcher.attention = Joiners(), Attention(60.0)
    held(watcher, 0.2)
    assert isinstance(watcher.look(0.4), Plan)


def test_a_clock_that_is_set_forward_ends_the_wait() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    assert isinstance(watcher.look(3600.0), Plan)


def test_a_clock_that_is_set_back_does_not_make_it_longer() -> None:
    watcher = Watcher()
    watcher.world.ready("c").starting("d")
    held(watcher)
    held(watcher, -3600.0)
    assert isinstance(watcher.look(0.4), Plan)


MOVES = st.one_of(
    st.tuples(st.just("wait"), st.floats(0.01, 20.0)),
    st.tuples(st.just("come"), st.sampled_from("cdefghi")),
    st.tuples(st.just("go"), st.sampled_from("cdefghi")),
    st.tuples(st.just("start"), st.sampled_from("xyz")),
    st.tuples(st.just("change its mind"), st.booleans()),
    st.tuples(st.just("lose the board"), st.floats(0.01, 2.0)),
)


@settings(max_examples=60)
@given(
    speeds=st.lists(st.floats(0.1, 100.0), min_size=9, max_size=9).map(sorted),
    pause_s=st.floats(0.01, 30.0),
    moves=st.lists(MOVES, max_size=40),
)
def test_a_plan_loses_no_more_by_waiting_than_a_change_costs(
    speeds: list[float], pause_s: float, moves: list[tuple[str, Any]]
) -> None:
    planner = ToldPlanner(speeds, pause_s)
    watcher = Watcher(planner)
    world, foregone, waited_s = watcher.world.starting("stuck"), 0.0, 0.0
    for move, what in moves:
        match move:
            case "come":
                world.ready(what)
            case "go" if what in world.hands:
                world.lose(what)
            case "start":
                world.starting(what)
            case "change its mind":
                planner.keeps = what
        gap_s = what if isinstance(what, float) else 0.1
        if (waits := watcher.in_force) is not None:  # the loop looks again in time
            gap_s = min(gap_s, max(0.0, waits.until_unix_s - world.now) + 2e-6)
            foregone += gap_s * waits.foregone_samples_per_second
            waited_s += gap_s
        if isinstance(watcher.look(gap_s, board_away=move == "lose the board"), Plan):
            break
    assert foregone <= pause_s * speeds[2] + 1e-4 * speeds[-1]
    assert waited_s <= LONGEST_S + 1e-3


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
