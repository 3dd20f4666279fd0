"""The first plan: when it comes, and with whom."""

from __future__ import annotations

from dataclasses import replace

from control_world import World, donors_of, grid_of

from parcae_api.plan import PlanReason
from parcae_operator.actions import Fail
from parcae_operator.controller import INITIAL_WAIT_S
from parcae_operator.observation import starting_agents


def test_nothing_is_planned_before_an_agent_has_told_the_model() -> None:
    world = World(has_profile=False).starting("a", "b")
    assert world.next_plan() is None
    assert world.status() == ("Starting", "no agent has loaded the user's code yet")


def test_all_who_are_there_start_together() -> None:
    plan = World(stages=(2, 6)).ready("a", "b", "c", "d").publish()
    assert plan.reason is PlanReason.INITIAL
    assert plan.revision == 1
    assert grid_of(plan) == [["a", "b"], ["c", "d"]]
    assert donors_of(plan) == []


def test_the_first_plan_waits_for_agents_that_still_start() -> None:
    world = World().ready("a", "b").starting("c")
    assert world.next_plan() is None
    assert world.status() == ("WaitingForInstances", "2 instances are ready, 1 are still starting")
    world.hands["c"].ready = True
    assert grid_of(world.publish()) == [["a"], ["b"], ["c"]]


def test_it_waits_for_a_pod_that_runs_and_is_not_on_the_board_yet() -> None:
    assert World().ready("a").starting("b", on_board=False).next_plan() is None


def test_it_does_not_wait_for_ever() -> None:
    # An agent that never appears, or one that hangs in its imports.
    for on_board in (False, True):
        world = World().ready("a").starting("b", on_board=on_board).wait(INITIAL_WAIT_S)
        assert grid_of(world.publish()) == [["a"]]


def test_it_does_not_wait_for_pods_without_an_instance() -> None:
    assert grid_of(World().ready("a").pending("b", "c").publish()) == [["a"]]


def test_it_does_not_wait_for_those_that_are_about_to_go() -> None:
    world = World().ready("a").starting("b").notice("b")
    assert grid_of(world.publish()) == [["a"]]


def test_it_does_not_wait_for_an_agent_whose_pod_is_gone() -> None:
    world = World().ready("a").starting("b")
    pods = tuple(pod for pod in world.observe().pods if pod.name == "a")
    assert len(world.observe().agents) == 2
    assert starting_agents(replace(world.observe(), pods=pods)) == 0


def test_below_the_minimum_nothing_starts_and_the_status_says_so() -> None:
    world = World(least=3).ready("a", "b").pending("c")
    assert world.next_plan() is None
    reason, message = world.status()
    assert reason == "WaitingForInstances"
    assert message == "2 instances are ready, fewer than instances.min (3)"
    assert grid_of(world.ready("c").publish()) == [["a"], ["b"], ["c"]]


def test_too_few_for_the_depth_says_so() -> None:
    world = World(stages=(3, 6)).ready("a", "b").pending("c")
    assert world.next_plan() is None
    assert world.status()[1] == "2 workers are fewer than pipeline.minStages (3)"


def test_whoever_has_a_notice_is_not_counted() -> None:
    world = World(least=2).ready("a", "b").notice("b")
    assert world.next_plan() is None


def test_a_job_that_is_suspended_from_the_start_does_not_start() -> None:
    world = World(suspend=True).ready("a", "b")
    assert world.next_plan() is None
    assert world.status()[1] == "spec.suspend is true"
    world.suspend = False
    assert world.publish().reason is PlanReason.INITIAL


def test_more_stages_than_layers_can_never_run() -> None:
    world = World(layers=6, most=9, stages=(7, 9)).ready("a")
    end = world.end()
    assert isinstance(end, Fail)
    assert end.message == (
        "no layout is possible: pipeline.minStages is 7, but the model has only 6 layers; "
        "change the manifest"
    )


def test_too_little_memory_waits_for_more_instances() -> None:
    # A layer takes 300 + 2 x 100 and its activations; three of them do not fit on one device.
    world = World().ready("a", "b", memory=1700)
    assert world.end() is None
    assert world.next_plan() is not None
    world = World().ready("a", memory=1700)
    assert world.end() is None
    assert world.next_plan() is None
    assert "does not fit on 1 worker" in world.status()[1]


def test_a_board_that_lost_its_data_is_no_way_back() -> None:
    # Workers obey only what is newer than what they have obeyed.
    world = World().training(1, 2, "a", "b")
    assert world.plan is not None
    world._publish(world.plan.model_copy(update={"revision": 7}))
    world.obey()
    world.plan = None
    assert world.publish().revision == 8
