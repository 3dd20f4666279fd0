"""Waits by a clock that is set back, or another than the one that wrote the stamp."""

from __future__ import annotations

import pytest
from control_world import World
from hypothesis import given
from hypothesis import strategies as st

from parcae_api.plan import PlanReason
from parcae_operator.availability import Availability
from parcae_operator.controller import BROKEN_GRACE_S, FORMING_LIMIT_S
from parcae_operator.waits import is_over

AHEAD_S = st.floats(-1e9, 1e9)
APART = pytest.mark.parametrize("apart_s", [-3600.0, -86400.0 * 365], ids=["hour", "year"])


@given(ahead_s=AHEAD_S, wait_s=st.floats(0.1, 1e6))
def test_no_wait_lasts_longer_than_twice_its_time(ahead_s: float, wait_s: float) -> None:
    now_s = 2e9
    stamp_s = now_s + ahead_s
    assert is_over(stamp_s, now_s, wait_s) or is_over(stamp_s, now_s + 2.001 * wait_s, wait_s)


@given(wait_s=st.floats(0.1, 1e6), share=st.floats(0.0, 0.999))
def test_it_is_waited_for_as_long_as_asked(wait_s: float, share: float) -> None:
    now_s = 2e9
    assert not is_over(now_s, now_s + share * wait_s * 0.99, wait_s)
    assert is_over(now_s, now_s + wait_s * 1.001, wait_s)


@APART
def test_a_first_plan_comes_though_the_clock_was_set_back(apart_s: float) -> None:
    world = World().ready("a").starting("b")
    assert world.next_plan() is None
    assert world.wait(apart_s).next_plan() is not None


@APART
def test_a_revision_that_another_clock_wrote_and_that_never_forms_is_replaced(
    apart_s: float,
) -> None:
    world = World().ready("a", "b")
    world.publish()
    assert world.wait(apart_s).next_plan() is not None


def test_clocks_that_differ_little_give_a_revision_its_time() -> None:
    world = World().ready("a", "b")
    world.publish()
    assert world.wait(-5.0).next_plan() is None
    assert world.wait(5.0 + FORMING_LIMIT_S).next_plan() is not None


@APART
def test_a_broken_revision_is_formed_again_though_the_clock_was_set_back(apart_s: float) -> None:
    world = World().training(2, 1, "a", "b").break_("a")
    assert world.wait(0.5 * BROKEN_GRACE_S).next_plan() is None
    plan = world.wait(apart_s).publish()
    assert plan.reason is PlanReason.LOSS


@APART
def test_instances_are_counted_on_though_the_clock_was_set_back(apart_s: float) -> None:
    now_s = 2e9
    before = Availability(60.0, now_s, None)
    for after_s in (1.0, 61.0):
        before.saw(now_s + after_s, frozenset("ab"))
    for seen in (before, Availability(60.0, now_s, before.history)):  # the same, or the next one
        now_back_s = now_s + apart_s
        seen.saw(now_back_s, frozenset("a"))
        assert seen.saw(now_back_s + 60.0, frozenset("a"))
        assert [i.available for i in seen.history.intervals] == [2, 1]
        assert (seen.history.intervals[-1].added, seen.history.intervals[-1].removed) == (0, 1)
