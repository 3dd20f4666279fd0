"""Plan changes while training: notices, losses, joins, and revisions that do not form."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_world import World, donors_of, grid_of

from parcae_api.membership import AgentState, Notice
from parcae_api.plan import PlanReason
from parcae_operator.controller import BROKEN_GRACE_S, FORMING_LIMIT_S
from parcae_operator.observation import PodPhase, living_workers
from parcae_operator.replan import pause


def test_while_all_is_well_nothing_changes() -> None:
    world = World().training(4, 1, "a", "b", "c", "d")
    assert world.next_plan() is None
    assert world.wait(3600).next_plan() is None
    assert world.status()[0] == "Training"


# Notices.


def test_a_notice_moves_the_work_off_in_time() -> None:
    world = World().training(4, 1, "a", "b", "c", "d").notice("b")
    plan = world.publish()
    assert plan.reason is PlanReason.NOTICE
    assert plan.revision == 2
    assert grid_of(plan) == [["a"], ["c"], ["d"]]
    assert donors_of(plan) == []  # the others hold all that b holds


def test_an_agents_own_notice_counts_like_the_clusters() -> None:
    world = World().training(2, 1, "a", "b")
    seen = world.observe()
    told = seen.agents["b"].model_copy(
        update={"notice": Notice(deadline_unix_s=2000.0, source="sigterm"), "state": "leaving"}
    )
    assert told.state == AgentState.LEAVING
    seen = replace(seen, agents={**seen.agents, "b": told})
    assert [w.leaving for w in living_workers(seen)] == [False, True]


def test_only_sole_holders_stay_as_donors() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b", spare=["c"]).notice("b")
    plan = world.publish()
    assert grid_of(plan) == [["a", "c"]]
    assert donors_of(plan) == ["b"]
    world.obey()
    assert not world.rollbacks
    assert world.next_plan() is None  # the donor may go: nothing depends on it any more
    world.lose("b")
    assert world.next_plan() is None


def test_a_donor_that_stays_is_preferred_to_one_that_leaves() -> None:
    world = World(stages=(2, 2), most=5).training(2, 2, "a", "b", "c", "d")
    # Two are left for stage 0 alone: one of them is enough, and the one that stays does it.
    world.ready("e").notice("b", "d", "c")
    plan = world.publish()
    assert grid_of(plan) == [["a", "e"]]
    assert donors_of(plan) == ["b"]


def test_the_notice_of_a_spare_changes_nothing() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b", spare=["c"]).notice("c")
    assert world.next_plan() is None
    assert world.lose("c").next_plan() is None


def test_all_members_leave_at_once_and_newcomers_take_over() -> None:
    world = World(stages=(2, 2), most=6).training(1, 2, "a", "b", spare=["c", "d"])
    plan = world.notice("a", "b").publish()
    assert grid_of(plan) == [["c", "d"]]
    assert set(donors_of(plan)) == {"a", "b"}
    world.obey()
    assert not world.rollbacks


def test_an_old_donor_is_no_holder_any_more() -> None:
    world = World(stages=(2, 2), most=5)
    world.training(1, 2, "a", "b", spare=["c"])
    world.notice("b").publish()
    world.obey().train(5)
    # b served c as a donor, stayed, and has long been behind when c leaves too.
    world.hands["b"].notice = None
    world.ready("d").notice("c")
    plan = world.publish()
    assert "c" in donors_of(plan) + [name for row in grid_of(plan) for name in row]
    world.obey()
    assert not world.rollbacks


# Losses.


def test_a_loss_is_answered_at_once() -> None:
    world = World().training(4, 1, "a", "b", "c", "d").lose("b")
    plan = world.publish()
    assert plan.reason is PlanReason.LOSS
    assert plan.reason.breaks_the_epoch
    assert grid_of(plan) == [["a"], ["c"], ["d"]]


def test_a_lost_lease_is_a_loss_and_its_return_a_join() -> None:
    world = World().training(2, 1, "a", "b")
    world.hands["b"].on_board = False
    assert grid_of(world.publish()) == [["a"]]
    world.obey().train(5)
    world.hands["b"].on_board = True  # with what it held, long out of date
    plan = world.publish()
    assert plan.reason is PlanReason.JOIN
    assert grid_of(plan) == [["a"], ["b"]]
    world.obey()
    assert not world.rollbacks


def test_a_pod_that_is_gone_is_a_loss_though_its_lease_lasts() -> None:
    world = World().training(2, 1, "a", "b")
    world.hands["b"].phase = PodPhase.GONE
    assert world.publish().reason is PlanReason.LOSS


def test_the_loss_of_a_spare_changes_nothing() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b", spare=["c"])
    assert world.lose("c").next_plan() is None


def test_a_loss_while_a_revision_forms_replaces_it_at_once() -> None:
    world = World(stages=(2, 2), most=5).training(1, 2, "a", "b", spare=["c"])
    world.notice("b").publish()  # never obeyed: c dies
    world.lose("c")
    plan = world.publish()
    assert plan.revision == 3
    assert plan.reason is PlanReason.LOSS
    assert plan.layout is None  # nobody is left for stage 1
    world.obey()
    # The one with the notice still had the only copy, and has saved it.
    assert world.checkpoint == 10


def test_the_loss_of_a_donor_matters_while_the_revision_forms() -> None:
    world = World(stages=(2, 2), most=5).training(1, 2, "a", "b", spare=["c"])
    world.notice("b").publish()
    assert world.lose("b").publish().reason is PlanReason.LOSS


def test_a_copy_outside_the_grid_is_fetched_though_it_seems_stale() -> None:
    world = World(stages=(2, 2), most=6).training(1, 2, "a", "b", spare=["c", "d"])
    world.notice("b").publish()
    # Revision 2 breaks after c had agreed and before b could: on the board b's state looks older.
    mine = world.hands["a"].held
    assert mine is not None
    world.hands["c"].held = world.hands["c"].said = mine.model_copy(update={"revision": 2})
    world.break_("a", "b", "c").wait(BROKEN_GRACE_S)
    plan = world.publish()
    assert plan.reason is PlanReason.LOSS
    assert "b" in donors_of(plan)


def test_after_a_pause_too_all_copies_are_fetched_that_may_be_the_last() -> None:
    world = World(stages=(2, 2), most=6)
    world.training(2, 2, "a", "b", "c", "d", spare=["e", "f"])
    assert donors_of(world.notice("b", "d").publish()) == ["b"]
    world.obey_half(["a"])  # a has agreed on revision 2, b, d and c have not
    assert world.lose("c", "e", "f").publish().layout is None
    plan = world.ready("g").publish()
    # Whether b or d was a member of revision 2 cannot be seen any more.
    assert grid_of(plan) == [["a", "g"]]
    assert donors_of(plan) == ["b", "d"]
    world.obey()
    assert not world.rollbacks


def test_after_a_pause_an_old_donor_is_no_holder() -> None:
    world = World(stages=(2, 2), most=5)
    world.training(1, 2, "a", "b", spare=["c"]).notice("b").publish()
    world.obey().train(5)
    world.hands["b"].notice = None
    world.lose("a")  # with a layer that nobody else holds: but b's copy of the others is no help
    world.suspend = True
    world.notice("c")
    world.plan = world.plans[3] = pause(world.observe(), PlanReason.SUSPEND, "a test")
    world.obey()
    world.suspend = False
    plan = world.ready("d").publish()
    assert donors_of(plan)[0] == "c"


def test_a_stale_copy_does_not_decide_who_takes_which_place() -> None:
    world = World(stages=(2, 2)).training(2, 2, "a", "b", "c", "d").lose("d")
    assert grid_of(world.publish()) == [["a", "b"]]
    world.obey().train(5).notice("b")
    plan = world.publish()
    assert grid_of(plan) == [["a", "c"]]  # c held the first stage, five steps ago


# Joins.


def test_a_join_is_taken_in_when_it_makes_training_faster() -> None:
    world = World().training(2, 1, "a", "b").ready("c")
    plan = world.publish()
    assert plan.reason is PlanReason.JOIN
    assert grid_of(plan) == [["a"], ["b"], ["c"]]


def test_a_join_that_makes_nothing_faster_stays_spare() -> None:
    world = World(stages=(2, 2)).training(1, 2, "a", "b").ready("c")
    assert world.next_plan() is None


def test_a_join_while_a_revision_forms_waits_for_it() -> None:
    world = World().ready("a", "b")
    world.publish()
    world.ready("c")
    assert world.next_plan() is None
    assert world.status()[0] == "Forming"
    assert world.obey().publish().reason is PlanReason.JOIN


def test_a_notice_while_a_revision_forms_waits_for_it() -> None:
    world = World().ready("a", "b")
    world.publish()
    assert world.notice("a").next_plan() is None
    assert world.obey().publish().reason is PlanReason.NOTICE


def test_an_agent_that_starts_during_training_is_not_waited_for() -> None:
    world = World().training(2, 1, "a", "b").starting("c").notice("a")
    assert grid_of(world.publish()) == [["b"]]


def test_scattering_measurements_alone_never_change_the_layout() -> None:
    world = World().training(1, 4, "a", "b", "c", "d")  # 4x1 would be faster by far
    assert world.next_plan() is None


# Revisions that do not form, or break.


def test_a_broken_revision_is_formed_again_after_a_grace() -> None:
    world = World().training(2, 1, "a", "b").break_("a")
    assert world.next_plan() is None  # the loss behind it may still be seen
    assert world.wait(BROKEN_GRACE_S * 0.9).next_plan() is None
    plan = world.wait(BROKEN_GRACE_S * 0.2).publish()
    assert plan.reason is PlanReason.LOSS
    assert grid_of(plan) == [["a"], ["b"]]


def test_revisions_that_break_again_and_again_are_formed_less_and_less_often() -> None:
    world = World().training(2, 1, "a", "b")
    waits = []
    for _ in range(7):
        world.break_("a", "b")
        started = world.now
        while world.next_plan() is None:
            world.wait(0.25)
        waits.append(world.now - started)
        world.publish()
    assert waits == [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0]
    world.obey().train(5).break_("a")
    assert world.wait(BROKEN_GRACE_S).next_plan() is not None


def test_a_revision_that_never_forms_is_replaced() -> None:
    world = World().ready("a", "b")
    world.publish()
    assert world.wait(FORMING_LIMIT_S - 1).next_plan() is None
    plan = world.wait(1).publish()
    assert plan.revision == 2
    assert plan.reason is PlanReason.LOSS


@pytest.mark.parametrize("leaving", [["a"], ["a", "c"], ["b", "c"]])
def test_a_plan_never_names_a_worker_that_leaves_or_is_gone(leaving: list[str]) -> None:
    world = World(stages=(1, 2)).training(2, 2, "a", "b", "c", "d").notice(*leaving).lose("d")
    plan = world.publish()
    assert not {f"{name}/0" for name in leaving} & set(plan.workers)
    assert set(plan.members) <= {f"{name}/0" for name in world.hands}
