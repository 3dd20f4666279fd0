"""A board that was away: whoever is off it with all the others will be back."""

from __future__ import annotations

from dataclasses import replace

from control_world import World

from parcae_api.plan import Plan, PlanReason
from parcae_operator.actions import PublishPlan
from parcae_operator.controller import decide
from parcae_operator.observation import BOARD_AWAY, PodPhase, Trouble
from parcae_operator.reunion import DOUBTFUL_S, LONGEST_S, Reunion
from parcae_optimizer.reactive import ReactivePlanner

NAMES = ("a", "b", "c")


class Watcher:
    """A world and an operator that remembers, and has been there for long."""

    def __init__(self) -> None:
        self.world = World(least=2).training(3, 1, *NAMES)
        self.returned: frozenset[str] = frozenset()
        self.restart()
        assert self.look() == (set(), None)
        assert self.look(DOUBTFUL_S) == (set(), None)

    def restart(self) -> None:
        self.reunion = Reunion()

    def off(self, *names: str) -> None:
        for name in names:
            self.world.hands[name].on_board = False

    def back(self, *names: str) -> None:
        for name in names:
            self.world.hands[name].on_board = True

    def look(self, after_s: float = 1.0, *, is_away: bool = False) -> tuple[set[str], Plan | None]:
        """Whom it waits for, and what it would publish."""
        looked = replace(self.world.wait(after_s).observe(), returned=self.returned)
        if is_away:
            looked = replace(looked, troubles=(Trouble(BOARD_AWAY, "no answer"),))
        seen = self.reunion.on(looked)
        plans = [a.plan for a in decide(seen, ReactivePlanner()) if isinstance(a, PublishPlan)]
        return set(seen.awaited), plans[0] if plans else None


def test_all_at_once_and_back_one_by_one_changes_nothing() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    assert watcher.look() == (set(NAMES), None)
    watcher.back("b")
    assert watcher.look(5) == ({"a", "c"}, None)
    watcher.back("a", "c")
    assert watcher.look() == (set(), None)


def test_another_operator_waits_too() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    watcher.restart()
    assert watcher.look() == (set(NAMES), None)


def test_one_alone_is_lost_at_once() -> None:
    watcher = Watcher()
    watcher.off("b")
    awaited, plan = watcher.look(0.1)
    assert awaited == set()
    assert plan is not None
    assert plan.reason is PlanReason.LOSS


def test_one_alone_is_lost_at_once_also_after_a_reunion() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    watcher.look()
    watcher.back(*NAMES)
    watcher.look()
    watcher.off("c")
    assert watcher.look(0.1)[1] is not None


def test_leases_that_end_one_after_the_other_at_a_board_that_is_back() -> None:
    watcher = Watcher()
    assert watcher.look(60, is_away=True) == (set(), None)
    watcher.off("a")
    assert watcher.look(5) == ({"a"}, None)
    watcher.off("b", "c")
    assert watcher.look(0.5) == (set(NAMES), None)
    watcher.back(*NAMES)
    assert watcher.look(5) == (set(), None)


def test_the_same_at_a_first_look() -> None:
    watcher = Watcher()
    watcher.restart()
    watcher.look()
    watcher.off("a")
    assert watcher.look() == ({"a"}, None)


def test_who_was_off_it_at_a_first_look_alone_is_lost() -> None:
    watcher = Watcher()
    watcher.off("a")
    watcher.restart()
    awaited, plan = watcher.look()
    assert awaited == set()
    assert plan is not None
    assert plan.reason is PlanReason.LOSS


def test_an_operator_that_finds_some_back_already_waits_for_the_others() -> None:
    watcher = Watcher()
    watcher.off("a", "c")
    watcher.returned = frozenset({"b"})
    watcher.restart()
    assert watcher.look() == ({"a", "c"}, None)
    watcher.back("c")
    watcher.returned |= {"c"}
    assert watcher.look(5) == ({"a"}, None)
    watcher.back("a")
    assert watcher.look() == (set(), None)


def test_who_came_back_long_ago_says_nothing_of_who_goes_now() -> None:
    watcher = Watcher()
    watcher.returned = frozenset({"b"})
    watcher.restart()
    watcher.look()
    watcher.look(DOUBTFUL_S)
    watcher.off("a")
    assert watcher.look(0.1)[1] is not None


def test_a_spare_that_came_after_the_plan_is_no_sign() -> None:
    watcher = Watcher()
    watcher.world.ready("spare")
    watcher.off("a")
    watcher.returned = frozenset({"spare"})
    watcher.restart()
    awaited, plan = watcher.look()
    assert awaited == set()
    assert plan is not None


def test_when_the_board_has_been_back_for_long_one_alone_is_lost_at_once() -> None:
    watcher = Watcher()
    watcher.look(60, is_away=True)
    watcher.look(DOUBTFUL_S)
    watcher.off("b")
    assert watcher.look(0.1)[1] is not None


def test_spares_on_the_board_say_that_it_is_there() -> None:
    watcher = Watcher()
    watcher.world.ready("spare")
    watcher.look()
    watcher.off(*NAMES)
    awaited, plan = watcher.look()
    assert awaited == set()
    assert plan is not None


def test_it_is_not_for_ever() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    watcher.look()
    watcher.back("a", "b")
    assert watcher.look(LONGEST_S - 1) == ({"c"}, None)
    awaited, plan = watcher.look(1)
    assert awaited == set()
    assert plan is not None
    assert plan.workers == ("a/0", "b/0")
    assert watcher.look()[0] == set()


def test_none_comes_back() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    watcher.look()
    awaited, plan = watcher.look(LONGEST_S)
    assert awaited == set()
    assert plan is not None
    assert plan.layout is None
    assert watcher.look(LONGEST_S)[0] == set()  # it does not begin anew


def test_whose_pod_is_gone_or_about_to_go_is_not_waited_for() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    watcher.world.hands["a"].phase = PodPhase.GONE
    watcher.world.notice("b")
    assert watcher.look() == ({"c"}, None)
    watcher.back("b", "c")
    awaited, plan = watcher.look()
    assert awaited == set()
    assert plan is not None
    assert plan.workers == ("c/0",) or plan.layout is None


def test_who_is_back_and_says_that_it_broke_is_believed() -> None:
    watcher = Watcher()
    watcher.off(*NAMES)
    watcher.look()
    watcher.back("a", "b")
    watcher.world.break_("a", "b")
    plan = watcher.look()[1]
    assert plan is not None
    assert plan.reason is PlanReason.LOSS


def test_a_pause_waits_for_nobody() -> None:
    watcher = Watcher()
    watcher.world.suspend = True
    watcher.world.publish()
    watcher.world.obey()
    watcher.off(*NAMES)
    assert watcher.look()[0] == set()
