"""Pods that are too many, or needed no more."""

from __future__ import annotations

from dataclasses import replace

from control_world import World

from parcae_api.job import Checkpoint
from parcae_api.membership import Holding
from parcae_api.plan import PlanReason
from parcae_operator.observation import Observation, PodPhase
from parcae_operator.pods import pods_done, pods_too_many, pods_wanted


def with_place(seen: Observation) -> Observation:
    """The job has a checkpoint path."""
    spec = seen.job.spec.model_copy(update={"checkpoint": Checkpoint(path="/state")})
    return replace(seen, job=seen.job.model_copy(update={"spec": spec}))


def test_nothing_is_given_back_while_there_is_room() -> None:
    assert pods_too_many(World(most=3).training(2, 1, "a", "b").pending("c").observe()) == ()


def test_waiting_pods_go_first_then_spares_then_members_youngest_first() -> None:
    world = World(most=4).training(2, 1, "a", "b", spare=["c"])
    world.starting("d", on_board=False).pending("e", "f")
    order = [pods_too_many(replace_max(world, most)) for most in (5, 4, 3, 2, 1)]
    assert order[0] == ("f",)
    assert order[1] == ("f", "e")
    assert order[2] == ("f", "e", "d")
    assert order[3] == ("f", "e", "d", "c")
    assert order[4] == ("f", "e", "d", "c", "b")


def replace_max(world: World, most: int) -> Observation:
    world.most = most
    return world.observe()


def test_those_that_leave_anyway_do_not_count() -> None:
    world = World(most=2).training(2, 1, "a", "b", spare=["c"]).notice("c")
    assert pods_too_many(world.observe()) == ()
    world.hands["c"].phase = PodPhase.GONE
    world.hands["c"].notice = None
    assert pods_too_many(world.observe()) == ()


def test_a_job_that_is_told_to_end_keeps_its_pods() -> None:
    world = World(most=1).training(2, 1, "a", "b")
    world.finish = "interrupted"
    assert pods_too_many(world.observe()) == ()
    assert pods_wanted(world.observe()) == 0


# Suspended.


def test_a_job_suspended_before_it_began_gives_all_back_at_once() -> None:
    world = World(suspend=True).ready("a").pending("b")
    assert sorted(pods_too_many(world.observe())) == ["a", "b"]
    assert pods_wanted(world.observe()) == 0


def test_without_a_place_for_state_pods_keep_it() -> None:
    world = World().training(2, 1, "a", "b")
    world.suspend = True
    assert world.publish().reason is PlanReason.SUSPEND
    world.obey()
    assert pods_too_many(world.observe()) == ()


def test_pods_are_given_back_only_when_all_they_hold_is_saved() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b")
    world.suspend = True
    assert pods_too_many(with_place(world.observe())) == ()  # it trains
    world.publish()
    assert pods_too_many(with_place(world.observe())) == ()  # nobody has obeyed
    world.obey()
    half = world.hands["b"].saved
    world.hands["b"].saved = None
    assert pods_too_many(with_place(world.observe())) == ()  # half is saved
    assert half is not None
    world.hands["b"].saved = half.model_copy(update={"step": half.step - 1})
    assert pods_too_many(with_place(world.observe())) == ()  # of an older step
    world.hands["b"].saved = half
    assert sorted(pods_too_many(with_place(world.observe()))) == ["a", "b"]


def test_nothing_is_asked_for_while_suspended_and_all_again_afterwards() -> None:
    world = World(most=3, suspend=True)
    assert pods_wanted(world.observe()) == 0
    world.suspend = False
    assert pods_wanted(world.observe()) == 3


# Leaving.


def test_a_leaving_pod_is_done_when_the_newest_plan_needs_nothing_of_it() -> None:
    world = World().training(2, 1, "a", "b").notice("b")
    assert pods_done(world.observe()) == ()  # a member
    world.publish()
    assert pods_done(world.observe()) == ()  # its state may be needed
    world.obey()
    assert pods_done(world.observe()) == ("b",)


def test_a_leaving_pod_that_keeps_a_paused_jobs_state_is_not_done() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    world.publish()
    world.obey()
    assert world.plan is not None
    assert world.plan.layout is None
    assert pods_done(world.observe()) == ()
    assert pods_done(with_place(world.observe())) == ("b",)


def test_the_end_is_saved_before_anyone_leaves() -> None:
    world = World().training(1, 1, "a", spare=["b"]).notice("b")
    world.finish = "interrupted"
    world.publish()
    world.obey()
    assert world.plan is not None
    assert world.plan.reason is PlanReason.FINISH
    assert pods_done(world.observe()) == ()


def test_a_leaving_pod_that_never_was_ready_is_done() -> None:
    world = World().training(1, 1, "a").starting("b").notice("b")
    assert pods_done(world.observe()) == ("b",)


def test_pods_that_stay_are_never_done() -> None:
    world = World().training(1, 1, "a", spare=["b"])
    world.hands["b"].held = Holding(revision=1, first=0, last=6, step=1)
    assert pods_done(world.observe()) == ()
