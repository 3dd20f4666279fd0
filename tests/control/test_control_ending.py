"""The end of a job: all steps done, told to end, or failed."""

from __future__ import annotations

from control_world import TOTAL_STEPS, World

from parcae_api.plan import PlanReason
from parcae_operator.actions import Complete, Fail


def test_a_job_is_complete_when_its_last_state_is_saved_whole() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b")
    assert world.train(TOTAL_STEPS - 11).end() is None
    world.hands["b"].saved = None
    world.train(1)
    saved, world.hands["b"].saved = world.hands["b"].saved, None
    assert world.end() is None
    assert world.next_plan() is None  # it is being saved
    assert world.ready("c").next_plan() is None
    assert world.notice("a").next_plan() is None
    world.hands["b"].saved = saved
    assert world.end() == Complete(TOTAL_STEPS, "all 1000 steps are committed", saved=True)


def test_a_loss_while_the_last_state_is_saved_forms_once_more() -> None:
    world = World(stages=(2, 2), most=5).training(2, 2, "a", "b", "c", "d").train(TOTAL_STEPS)
    for name in ("b", "d"):
        world.hands[name].saved = None
    assert world.end() is None
    assert world.lose("b").publish().reason is PlanReason.LOSS
    assert world.obey().train(1).end() is not None


def test_a_loss_at_the_last_step_below_the_minimum_is_made_up_for_later() -> None:
    world = World(least=2, stages=(2, 2)).training(1, 2, "a", "b").train(TOTAL_STEPS)
    world.checkpoint = 0
    world._written.clear()
    world.hands["a"].saved = world.hands["b"].saved = None
    world.lose("b").publish()
    world.obey()
    assert world.end() is None
    assert world.ready("c").publish().reason is PlanReason.JOIN


def test_the_users_failure_ends_the_job_with_the_first_traceback() -> None:
    world = World().training(2, 1, "a", "b")
    world.fail("later", at=20.0).fail("boom", at=10.0, trace="Traceback ...")
    assert world.end() == Fail("boom", "Traceback ...")
    assert world.next_plan() is None
    assert world.pods_wanted() == 0


def test_a_failure_counts_before_anything_is_known_of_the_model() -> None:
    world = World(has_profile=False).starting("a").fail("there is no module 'x'")
    assert world.end() == Fail("there is no module 'x'", "")


# Told to end.


def test_told_to_end_all_save_and_the_job_is_complete() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b")
    world.finish = "interrupted"
    plan = world.publish()
    assert (plan.reason, plan.layout) == (PlanReason.FINISH, None)
    assert world.end() is None
    assert world.next_plan() is None
    world.obey()
    assert world.end() == Complete(10, "interrupted: 10 steps are committed", saved=True)


def test_what_an_earlier_pause_saved_is_not_the_end() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    world.publish()
    world.obey().quit().ready("c").publish()
    world.obey().train(40)
    assert world.checkpoint == 10
    world.finish = "interrupted"
    world.publish()
    assert world.end() is None  # step 10 was saved whole, but step 50 is what counts
    world.obey()
    assert world.end() == Complete(50, "interrupted: 50 steps are committed", saved=True)


def test_what_the_last_pause_saved_is_not_the_end_though_no_progress_is_known_since() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    world.publish()
    world.obey().quit().ready("c").publish()
    world.obey()
    assert world.progress is not None
    assert world.progress.step == world.checkpoint == 10
    world.finish = "interrupted"
    world.publish()
    assert world.end() is None  # they may have trained more by now


def test_what_standbys_saved_long_ago_is_not_the_end() -> None:
    world = World(least=2, stages=(2, 2)).training(1, 2, "a", "b")
    world.suspend = True
    world.publish()
    world.obey()
    world.suspend = False
    world.ready("c", "d").notice("a", "b")
    world.publish()
    world.obey().train(40)
    world.hands["a"].notice = world.hands["b"].notice = None
    world.finish = "interrupted"
    world.publish()
    world.lose("d").obey()  # half of step 50 is lost; a and b saved step 10 at the pause
    assert world.end() is None
    assert world.publish().reason is PlanReason.LOSS


def test_told_to_end_the_revision_that_forms_comes_first() -> None:
    world = World().ready("a", "b")
    world.publish()
    world.finish = "interrupted"
    assert world.next_plan() is None
    world.obey()
    assert world.publish().reason is PlanReason.FINISH


def test_after_a_loss_a_job_is_formed_again_before_it_ends() -> None:
    world = World().training(2, 1, "a", "b").lose("b")
    world.finish = "interrupted"
    assert world.publish().reason is PlanReason.LOSS
    world.obey()
    assert world.publish().reason is PlanReason.FINISH


def test_told_to_end_during_a_pause_what_was_saved_then_is_the_end() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("b")
    world.publish()
    world.obey().quit()
    world.finish = "the recording is over"
    assert world.publish().reason is PlanReason.FINISH
    world.obey()
    assert world.end() == Complete(10, "the recording is over: 10 steps are committed", saved=True)


def test_told_to_end_during_a_pause_with_nobody_left() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("a", "b")
    world.publish()
    world.obey().quit()
    world.finish = "the recording is over"
    world.publish()
    assert world.end() == Complete(
        10,
        "the recording is over, while training was paused: "
        "0 instances are ready, fewer than instances.min (2)",
        saved=False,
    )


def test_told_to_end_with_newcomers_only_waits_until_they_have_obeyed() -> None:
    world = World(least=2).training(2, 1, "a", "b").notice("a", "b")
    world.publish()
    world.obey().quit().ready("c")
    world.finish = "the recording is over"
    world.publish()
    assert world.end() is None
    world.obey()
    end = world.end()
    assert isinstance(end, Complete)
    assert not end.saved


def test_told_to_end_before_anything_began() -> None:
    world = World(least=3).ready("a")
    world.finish = "the recording is over"
    assert world.end() == Complete(
        0,
        "the recording is over, before any step was trained: "
        "1 instance is ready, fewer than instances.min (3)",
        saved=False,
    )
    assert world.next_plan() is None


def test_told_to_end_before_any_agent_was_ready() -> None:
    world = World(has_profile=False)
    world.finish = "interrupted"
    assert world.end() == Complete(
        0, "interrupted, before any step was trained: no instance is there", saved=False
    )


def test_told_to_end_in_a_pause_before_the_first_epoch() -> None:
    world = World().ready("a", "b")
    world.publish()
    world.lose("a", "b").publish()
    world.finish = "interrupted"
    world.publish()
    world.ready("c").obey()
    end = world.end()
    assert isinstance(end, Complete)
    assert (end.step, end.saved) == (0, False)


def test_a_death_at_the_very_end_goes_back_to_the_checkpoint_and_ends_again() -> None:
    world = World(stages=(2, 2), most=4).training(1, 2, "a", "b", spare=["c"])
    world.finish = "interrupted"
    world.publish()
    world.lose("b").obey()  # b dies before it has saved its half
    assert world.end() is None
    plan = world.publish()
    assert plan.reason is PlanReason.LOSS
    world.obey()
    assert world.rollbacks == [3]
    world.train(1)
    assert world.publish().reason is PlanReason.FINISH
    world.obey()
    assert world.end() == Complete(1, "interrupted: 1 step is committed", saved=True)


def test_an_operator_that_returns_goes_on_with_the_end() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b")
    world.finish = "interrupted"
    world.publish()
    world.finish = ""  # it was told to another operator, which died
    assert world.next_plan() is None
    world.obey()
    assert world.end() == Complete(10, "told to end: 10 steps are committed", saved=True)
