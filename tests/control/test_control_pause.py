"""Pauses: below the minimum, suspended by the user, and on again."""

from __future__ import annotations

from control_world import World, grid_of

from parcae_api.plan import PlanReason


def test_below_the_minimum_training_pauses_and_says_why() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    plan = world.publish()
    assert plan.layout is None
    assert plan.reason is PlanReason.NOTICE
    assert plan.why == (
        "1 instance is ready, fewer than instances.min (2); training pauses and its state is kept"
    )
    assert world.status() == ("Paused", plan.why)


def test_a_sudden_loss_below_the_minimum_breaks_the_epoch() -> None:
    world = World(least=2).training(2, 1, "a", "b").lose("b")
    plan = world.publish()
    assert plan.layout is None
    assert plan.reason is PlanReason.LOSS


def test_the_loss_of_a_spare_can_pause_too() -> None:
    world = World(least=3, stages=(2, 2)).training(1, 2, "a", "b", spare=["c"])
    plan = world.lose("c").publish()
    assert plan.layout is None
    assert plan.reason is PlanReason.SUSPEND


def test_a_pause_lasts_until_enough_are_back() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    world.publish()
    world.obey().quit()
    assert list(world.hands) == ["a"]
    assert world.wait(3600).next_plan() is None
    plan = world.ready("c").publish()
    assert plan.reason is PlanReason.JOIN
    assert grid_of(plan) == [["a"], ["c"]]
    world.obey()
    assert not world.rollbacks


def test_enough_are_back_before_the_pause_has_begun() -> None:
    world = World(least=2, stages=(2, 2)).training(1, 2, "a", "b").notice("b")
    world.publish()
    world.ready("c")  # nobody has obeyed yet: b still serves what it holds
    plan = world.publish()
    assert plan.revision == 3
    assert grid_of(plan) == [["a", "c"]]
    assert plan.donors == ("b/0",)
    world.obey()
    assert not world.rollbacks


def test_nobody_is_left_and_the_state_comes_back_from_its_checkpoint() -> None:
    world = World(least=2, stages=(2, 2)).training(1, 2, "a", "b").notice("a", "b")
    world.publish()
    world.obey().quit()
    assert not world.hands
    assert world.status()[0] == "Paused"
    assert world.next_plan() is None
    world.ready("c", "d").publish()
    world.obey()
    assert world.progress is not None
    assert world.progress.step == 10  # nothing was lost: all had been saved


def test_a_pause_is_not_broken_by_losses() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    world.publish()
    assert world.lose("b").next_plan() is None
    assert world.lose("a").next_plan() is None


def test_too_little_memory_pauses() -> None:
    world = World().training(1, 1, "a")
    world.hands["a"].memory = 100
    plan = world.ready("b", memory=100).publish()
    assert plan.layout is None
    assert "does not fit on 2 workers" in plan.why


def test_suspending_pauses_from_a_formed_plan() -> None:
    world = World().training(2, 1, "a", "b")
    world.suspend = True
    plan = world.publish()
    assert plan.layout is None
    assert (plan.reason, plan.why) == (PlanReason.SUSPEND, "spec.suspend is true")
    world.obey()
    assert world.next_plan() is None
    assert world.ready("c").next_plan() is None
    assert world.pods_wanted() == 0
    world.suspend = False
    assert world.publish().reason is PlanReason.JOIN


def test_suspending_waits_for_the_revision_that_forms() -> None:
    world = World().ready("a", "b")
    world.publish()
    world.suspend = True
    assert world.next_plan() is None
    world.obey()
    assert world.publish().layout is None


def test_after_a_loss_a_job_is_formed_again_before_it_is_suspended() -> None:
    world = World().training(2, 1, "a", "b")
    world.suspend = True
    plan = world.lose("b").publish()
    assert plan.reason is PlanReason.LOSS
    assert grid_of(plan) == [["a"]]
    world.obey()
    assert world.publish().reason is PlanReason.SUSPEND
