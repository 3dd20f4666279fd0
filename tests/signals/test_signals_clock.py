"""The operator's clock is set back by an hour, as on a machine that was wrong when it started."""

from __future__ import annotations

import pytest
from signal_objects import T0, make_node, taint

from parcae_api.membership import Hint
from parcae_operator.signals import NodeReading, NoticeLatch, Severity, read_node
from parcae_operator.signals.latch import HINT_RENEWED_S, KEEP_VANISHED_S
from parcae_operator.signals.record import CLEAR_AFTER_S

UID = "uid-aws"
BACK_S = 3600.0
ITN = taint("aws-node-termination-handler/spot-itn", "spot-itn-1")
IMPENDING = taint("cloud.google.com/impending-node-termination")


def reading(at_s: float, cloud: str = "aws", **changes: object) -> NodeReading:
    return read_node(make_node(cloud, **changes), at_s)


def latch_at(now_s: float, **changes: object) -> NoticeLatch:
    latch = NoticeLatch()
    latch.observe(reading(now_s, **changes))
    return latch


def test_a_notice_that_may_pass_is_heard_and_passes() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, "on-demand"))
    assert latch.observe(reading(T0 - BACK_S, "on-demand", taints=[IMPENDING])).doomed
    latch.observe(reading(T0 - BACK_S + 1, "on-demand"))
    after_s = T0 - BACK_S + 1 + CLEAR_AFTER_S
    assert not latch.observe(reading(after_s, "on-demand")).doomed


def test_what_was_absent_before_clears_in_time() -> None:
    latch = latch_at(T0, spec={"unschedulable": True})
    latch.observe(reading(T0 + 1))
    assert latch.observe(reading(T0 + 2 - BACK_S)).severity is Severity.HINT
    after_s = T0 + 2 - BACK_S + CLEAR_AFTER_S
    assert latch.observe(reading(after_s)).severity is Severity.HEALTHY


def test_a_node_that_is_seen_again_is_not_gone() -> None:
    latch = latch_at(T0)
    latch.settle((), T0 + 1)
    assert latch.state(UID).severity is Severity.GONE
    assert latch.observe(reading(T0 - BACK_S)).severity is Severity.HEALTHY


def test_a_node_that_vanished_is_forgotten_in_time() -> None:
    latch = latch_at(T0)
    latch.settle((), T0 + 1)
    latch.settle((), T0 + 1 - BACK_S)
    latch.settle((), T0 + 1 - BACK_S + KEEP_VANISHED_S)
    assert latch.states() == {}


def test_an_agents_hint_counts() -> None:
    latch = latch_at(T0)
    now_s = T0 - BACK_S
    hint = Hint(source="aws-rebalance", since_unix_s=now_s)
    assert latch.raise_hint(UID, hint, now_s).severity is Severity.HINT


def test_an_events_time_to_live_begins_anew_and_no_more() -> None:
    latch = latch_at(T0)
    hint = Hint(source="aws-rebalance", since_unix_s=T0)
    latch.raise_hint(UID, hint, T0)
    now_s = T0 - BACK_S
    assert latch.observe(reading(now_s)).severity is Severity.HINT
    assert latch.observe(reading(now_s + HINT_RENEWED_S + 1)).severity is Severity.HEALTHY


def test_a_clock_that_jumps_ahead_for_a_moment_takes_nothing_away() -> None:
    latch = NoticeLatch()
    uid = "uid-on-demand"
    latch.observe(reading(T0, "on-demand", taints=[IMPENDING]))
    for at_s in (T0 + 700, T0 + 1, T0 + 800, T0 + 2):
        latch.observe(reading(at_s, "on-demand", taints=[IMPENDING]))
    assert latch.notices()[uid].deadline_unix_s == T0 + 3600
    latch.settle((), T0 + 3)
    latch.settle((), T0 + 500)
    latch.settle((), T0 + 4)
    latch.settle((), T0 + KEEP_VANISHED_S)
    assert set(latch.states()) == {uid}


def test_what_is_certain_stays_so() -> None:
    latch = latch_at(T0, taints=[ITN])
    before = latch.notices()
    latch.observe(reading(T0 - BACK_S))
    assert latch.notices() == before


@pytest.mark.parametrize("late_s", [1.0, 59.0])
def test_a_reading_that_is_only_late_changes_no_clock(late_s: float) -> None:
    latch = latch_at(T0)
    latch.observe(reading(T0 - late_s, spec={"unschedulable": True}))
    assert latch.state(UID).severity is Severity.HEALTHY
