"""Pods wanted, and the status that people read."""

from __future__ import annotations

from control_world import World

from parcae_api.job_status import JobStatus
from parcae_operator.actions import SetStatus


def test_pods_for_the_maximum_are_asked_for_at_once() -> None:
    assert World(most=4, has_profile=False).pods_wanted() == 4


def test_pods_that_wait_for_an_instance_count() -> None:
    assert World(most=4).ready("a").pending("b", "c").pods_wanted() == 1


def test_a_pod_that_leaves_is_replaced_before_it_is_gone() -> None:
    assert World(most=2).training(2, 1, "a", "b").notice("b").pods_wanted() == 1


def test_a_pod_that_is_gone_is_replaced() -> None:
    assert World(most=2).training(2, 1, "a", "b").lose("b").pods_wanted() == 1


def test_too_many_pods_are_left_alone() -> None:
    assert World(most=1).training(2, 1, "a", "b").pods_wanted() == 0


def test_no_pods_are_asked_for_at_the_end() -> None:
    world = World(most=4).training(1, 1, "a")
    world.finish = "interrupted"
    assert world.pods_wanted() == 0


def test_a_plan_comes_before_pods_are_asked_for() -> None:
    # Workers stand still for it, while an API server may take its time.
    kinds = [
        type(action).__name__ for action in World().training(2, 1, "a", "b").lose("b").decide()
    ]
    assert kinds == ["SetStatus", "PublishPlan", "CreatePods"]


def test_the_status_tells_what_trains() -> None:
    world = World(stages=(2, 2)).training(2, 2, "a", "b", "c", "d", spare=["e"]).notice("e")
    actions = world.decide()
    assert isinstance(actions[0], SetStatus)
    status: JobStatus = actions[0].status
    assert status.configuration == "2x2"
    assert status.revision == 1
    assert status.step == 10
    assert status.instances == 4


def test_the_status_fits_into_a_condition() -> None:
    world = World().training(1, 1, "a")
    assert world.plan is not None
    world.plan = world.plan.model_copy(update={"why": "x" * 5000})
    assert len(world.status()[1]) == 1024
