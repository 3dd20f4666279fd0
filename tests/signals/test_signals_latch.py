"""The latch: what rises never falls, what is soft clears, hints expire, no order matters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signal_objects import T0, condition, make_event, make_node, rfc3339, taint

from parcae_api.membership import Hint, Notice
from parcae_operator.signals import (
    LatchRecords,
    NodeReading,
    NoticeLatch,
    Severity,
    Signal,
    read_event,
    read_node,
)
from parcae_operator.signals.event_tables import EVENTS, EVENTS_THAT_CLEAR
from parcae_operator.signals.latch import KEEP_VANISHED_S
from parcae_operator.signals.model import Place
from parcae_operator.signals.record import CLEAR_AFTER_S
from parcae_operator.signals.rules import EventRule, Needs
from parcae_operator.signals.tables import REBALANCE_TTL_S

ITN = taint("aws-node-termination-handler/spot-itn", "spot-itn-1")
REBALANCE = taint("aws-node-termination-handler/rebalance-recommendation", "rebalance-1")
IMPENDING = taint("cloud.google.com/impending-node-termination")
UID = "uid-aws"


def reading(at_s: float, cloud: str = "aws", **changes: object) -> NodeReading:
    return read_node(make_node(cloud, **changes), at_s)


def test_notice_stays_when_its_taint_is_removed() -> None:
    """Google's handler takes it off when another metadata key says NONE, and when it starts."""
    latch = NoticeLatch()
    latch.observe(reading(T0, "gke", taints=[IMPENDING]))
    state = latch.observe(reading(T0 + 500, "gke"))
    assert state.severity is Severity.DOOMED
    assert latch.notices() == {"uid-gke": Notice(deadline_unix_s=T0 + 30, source="gke-impending")}


def test_maintenance_that_is_called_off_clears_after_a_while() -> None:
    latch = NoticeLatch()
    uid = "uid-on-demand"
    latch.observe(reading(T0, "on-demand", taints=[IMPENDING]))
    assert latch.notices()[uid].deadline_unix_s == T0 + 3600
    assert latch.observe(reading(T0 + 1, "on-demand")).doomed, "it may flap"
    assert not latch.observe(reading(T0 + 1 + CLEAR_AFTER_S, "on-demand")).doomed
    assert latch.notices() == {}


def test_soft_signal_clears_without_another_reading() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, spec={"unschedulable": True}))
    latch.observe(reading(T0 + 1))
    assert UID in latch.hints()
    latch.settle([UID], T0 + 1 + CLEAR_AFTER_S)
    assert latch.hints() == {}


def test_flapping_counts_as_there() -> None:
    latch = NoticeLatch()
    for at_s in range(0, 60, 4):
        status = "Unknown" if at_s % 8 else "True"
        latch.observe(reading(T0 + 4 + at_s, ready=status))
        assert at_s == 0 or UID in latch.suspects()
    latch.observe(reading(T0 + 100))
    latch.observe(reading(T0 + 100 + CLEAR_AFTER_S))
    assert latch.state(UID).severity is Severity.HEALTHY


def test_unready_node_is_no_notice() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, ready="Unknown", taints=[taint("node.kubernetes.io/unreachable")]))
    assert latch.notices() == {}
    assert UID in latch.suspects()


def test_rebalance_is_a_hint_that_expires_for_good() -> None:
    """Nobody ever takes the taint off."""
    latch = NoticeLatch()
    assert latch.observe(reading(T0, taints=[REBALANCE])).severity is Severity.HINT
    latch.observe(reading(T0 + REBALANCE_TTL_S - 1, taints=[REBALANCE]))
    assert UID in latch.hints()
    for later_s in (0, 1, 5000):
        latch.observe(reading(T0 + REBALANCE_TTL_S + later_s, taints=[REBALANCE]))
        assert latch.hints() == {}
    both = reading(T0 + REBALANCE_TTL_S + 6000, taints=[REBALANCE, ITN])
    assert latch.observe(both).doomed, "and the interruption counts whatever came before"


def test_two_notices_for_one_node_are_one() -> None:
    """The termination handler and Karpenter may both be there."""
    latch = NoticeLatch()
    latch.observe(reading(T0, taints=[REBALANCE]))
    latch.observe(reading(T0 + 10, taints=[REBALANCE, ITN]))
    deleting = {"deletionTimestamp": rfc3339(T0 + 12)}
    karpenter = taint("karpenter.sh/disrupted")
    latch.observe(reading(T0 + 12, taints=[REBALANCE, ITN, karpenter], metadata=deleting))
    assert latch.notices() == {
        UID: Notice(deadline_unix_s=T0 + 130, source="nth-spot-itn"),
    }


def test_second_event_under_the_same_taint_changes_nothing() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, taints=[ITN]))
    latch.observe(reading(T0 + 50, taints=[ITN | {"value": "spot-itn-2"}]))
    assert latch.notices()[UID].deadline_unix_s == T0 + 120


def test_karpenter_takes_a_voluntary_disruption_back() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, "karpenter", taints=[taint("karpenter.sh/disrupted")]))
    assert latch.notices() == {}
    latch.observe(reading(T0 + 20, "karpenter"))
    latch.observe(reading(T0 + 20 + CLEAR_AFTER_S, "karpenter"))
    assert latch.state("uid-karpenter").severity is Severity.HEALTHY


def test_scale_down_that_fails_is_taken_back_and_a_left_over_one_goes_down_to_a_hint() -> None:
    latch = NoticeLatch()
    tainted = [taint("ToBeDeletedByClusterAutoscaler", str(int(T0)))]
    assert latch.observe(reading(T0, taints=tainted)).doomed
    assert latch.observe(reading(T0 + 1000, taints=tainted)).doomed
    assert latch.observe(reading(T0 + 1300, taints=tainted)).severity is Severity.HINT
    latch.observe(reading(T0 + 1301))
    latch.observe(reading(T0 + 1301 + CLEAR_AFTER_S))
    assert latch.state(UID).severity is Severity.HEALTHY


def test_shutdown_that_is_cancelled() -> None:
    latch = NoticeLatch()
    down = reading(T0, ready="False", ready_message="node is shutting down")
    assert latch.observe(down).deadline_unix_s == T0 + 15
    latch.observe(reading(T0 + 5))
    assert latch.observe(reading(T0 + 5 + CLEAR_AFTER_S)).severity is Severity.HEALTHY


def test_same_name_with_another_uid_is_another_node() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, "gke", taints=[IMPENDING]))
    again = reading(T0 + 60, "gke", metadata={"uid": "new", "creationTimestamp": rfc3339(T0 + 50)})
    assert latch.observe(again).severity is Severity.HEALTHY
    assert set(latch.notices()) == {"uid-gke"}


def test_node_that_is_on_no_list_is_gone_and_then_forgotten() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0))
    latch.settle([], T0 + 10)
    assert latch.state(UID).severity is Severity.GONE
    assert latch.notices()[UID] == Notice(deadline_unix_s=T0 + 10, source="node-vanished")
    latch.settle([], T0 + 10 + KEEP_VANISHED_S)
    assert latch.states() == {}


def test_list_that_was_wrongly_empty() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0))
    latch.settle([], T0 + 10)
    late = reading(T0)
    latch.observe(replace(late, read_unix_s=T0 - 1))
    assert latch.state(UID).severity is Severity.GONE, "an old reading proves nothing"
    assert latch.observe(reading(T0 + 20)).severity is Severity.HEALTHY


def test_stopped_instance_that_comes_back() -> None:
    latch = NoticeLatch()
    stopped = [taint("node.cloudprovider.kubernetes.io/shutdown")]
    gone = latch.observe(reading(T0, "azure", ready="Unknown", taints=stopped))
    assert gone.severity is Severity.GONE
    latch.observe(reading(T0 + 300, "azure"))
    back = latch.observe(reading(T0 + 300 + CLEAR_AFTER_S, "azure"))
    assert back.severity is Severity.HEALTHY


def test_late_reading_clears_nothing_and_shows_nothing_soft() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0 + 20))
    latch.observe(reading(T0, spec={"unschedulable": True}))
    assert latch.hints() == {}
    assert latch.observe(reading(T0 + 1, taints=[ITN])).doomed, (
        "what is latched counts, late or not"
    )


@pytest.mark.parametrize(
    "changes", [{"taints": [ITN]}, {"taints": [REBALANCE]}, {"spec": {"unschedulable": True}}, {}]
)
def test_successor_knows_what_its_predecessor_knew(changes: dict[str, object]) -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0, **changes))
    kept = LatchRecords.from_json(latch.snapshot().to_json())
    successor = NoticeLatch(kept)
    assert successor.states() == latch.states()
    successor.observe(reading(T0 + 60, **changes))
    latch.observe(reading(T0 + 60, **changes))
    assert successor.snapshot() == latch.snapshot()


def test_agents_notice_counts_for_the_whole_node() -> None:
    latch = NoticeLatch()
    latch.observe(reading(T0))
    notice = Notice(deadline_unix_s=T0 + 110, source="aws-spot-terminate")
    latch.raise_notice(UID, notice, T0)
    latch.observe(reading(T0 + 300))
    assert latch.notices() == {UID: notice}
    assert latch.raise_notice("", notice, T0).severity is Severity.HEALTHY


def test_agents_hint_counts_while_it_shows_it_and_for_an_hour_at_most() -> None:
    latch = NoticeLatch()
    hint = Hint(source="aws-rebalance", since_unix_s=T0)
    for at_s in range(0, 3600, 50):
        latch.raise_hint(UID, hint, T0 + at_s)
        assert latch.hints()[UID].source == "aws-rebalance"
    latch.raise_hint(UID, hint, T0 + 3600)
    assert latch.hints() == {}
    latch.raise_hint(UID, hint.model_copy(update={"since_unix_s": T0 + 4000}), T0 + 4000)
    latch.settle([UID], T0 + 4059)
    assert UID in latch.hints()
    latch.settle([UID], T0 + 4060)
    assert latch.hints() == {}, "the agent shows it no more"


# Events


def event_leads(rule: EventRule) -> float | None:
    return None if rule.severity < Severity.DOOMED else rule.lead_s


@pytest.mark.parametrize("rule", EVENTS, ids=lambda rule: f"{rule.reason}-{rule.needs}")
def test_every_event(rule: EventRule) -> None:
    node = reading(T0, "on-demand" if rule.needs is Needs.NOT_SPOT else "aws")
    signal = read_event(make_event(rule.reason, node.name), node, T0)
    assert signal is not None
    assert (signal.severity, signal.latched) == (rule.severity, rule.latched)
    lead_s = event_leads(rule)
    assert signal.deadline_unix_s == (None if lead_s is None else T0 + lead_s)
    assert signal.ttl_s is not None
    latch = NoticeLatch()
    latch.raise_(node.uid, signal)
    assert latch.state(node.uid).severity is rule.severity


@pytest.mark.parametrize("reason", sorted(EVENTS_THAT_CLEAR))
def test_events_never_clear(reason: str) -> None:
    node = reading(T0)
    assert read_event(make_event(reason, node.name), node, T0) is None


def raise_event(
    latch: NoticeLatch, reason: str, *, at_s: float, now_s: float, **node: object
) -> None:
    seen = read_node(make_node("aws", **node), now_s)
    latch.observe(seen)
    signal = read_event(make_event(reason, seen.name, at_s), seen, now_s)
    if signal is not None:
        latch.raise_(seen.uid, signal)


def test_event_raises_and_nothing_takes_it_back() -> None:
    latch = NoticeLatch()
    raise_event(latch, "SpotInterruption", at_s=T0 - 5, now_s=T0)
    raise_event(latch, "Uncordon", at_s=T0 + 1, now_s=T0 + 2)
    assert latch.notices()[UID] == Notice(deadline_unix_s=T0 + 115, source="event-SpotInterruption")


def test_event_about_an_earlier_node_of_that_name() -> None:
    latch = NoticeLatch()
    young = {"creationTimestamp": rfc3339(T0)}
    raise_event(latch, "SpotInterruption", at_s=T0 - 60, now_s=T0 + 1, metadata=young)
    assert latch.notices() == {}


def test_old_events_read_again_at_a_restart() -> None:
    latch = NoticeLatch()
    raise_event(latch, "SpotInterruption", at_s=T0 - 1800, now_s=T0)
    assert latch.notices() == {}, "half an hour later it still stands: that came to nothing"


def test_hint_by_event_expires() -> None:
    latch = NoticeLatch()
    raise_event(latch, "SpotRebalanceRecommendation", at_s=T0, now_s=T0)
    latch.settle([UID], T0 + 3599)
    assert UID in latch.hints()
    latch.settle([UID], T0 + 3600)
    assert latch.hints() == {}


def test_event_about_another_node_or_a_pod() -> None:
    node = reading(T0)
    assert read_event(make_event("SpotInterruption", "other"), node, T0) is None
    pod = make_event(
        "SpotInterruption", node.name, involvedObject={"kind": "Pod", "name": node.name}
    )
    assert read_event(pod, node, T0) is None
    assert read_event(make_event("NodeReady", node.name), node, T0) is None


# In any order, any number of times

observations = st.builds(
    lambda at_s, taints, cordon, ready, vm_event: read_node(
        make_node(
            "aws",
            taints=taints,
            spec={"unschedulable": cordon},
            ready=ready,
            conditions=vm_event,
        ),
        T0 + at_s,
    ),
    st.integers(0, 300),
    st.lists(st.sampled_from([ITN, REBALANCE, IMPENDING, taint("karpenter.sh/disrupted")])),
    st.booleans(),
    st.sampled_from(["True", "False", "Unknown"]),
    st.sampled_from([[], [condition("VMEventScheduled", message="Preempt")]]),
)


def _latched(readings: list[NodeReading]) -> tuple[object, ...]:
    latch = NoticeLatch()
    for seen in readings:
        latch.observe(seen)
    (record,) = latch.snapshot().records
    return record.worst, record.deadline_unix_s


@given(st.lists(observations, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(readings: list[NodeReading], random: object) -> None:
    shuffled = readings * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert _latched(shuffled) == _latched(readings)


@given(st.lists(observations, min_size=1, max_size=8))
def test_same_reading_twice(readings: list[NodeReading]) -> None:
    once, twice = NoticeLatch(), NoticeLatch()
    for seen in readings:
        once.observe(seen)
        twice.observe(seen)
        twice.observe(seen)
        assert once.snapshot() == twice.snapshot()


@given(st.lists(observations, min_size=1, max_size=12))
def test_latched_severity_never_falls_and_its_deadline_never_rises(
    readings: list[NodeReading],
) -> None:
    latch = NoticeLatch()
    severity, deadline_s = Severity.HEALTHY, float("inf")
    for seen in readings:
        state = latch.observe(seen)
        (record,) = latch.snapshot().records
        assert (record.worst.severity if record.worst else Severity.HEALTHY) >= severity
        assert (record.deadline_unix_s or float("inf")) <= deadline_s
        if record.worst:
            severity = record.worst.severity
            deadline_s = record.deadline_unix_s or deadline_s
            assert state.severity >= severity
            assert state.deadline_unix_s is not None
            assert state.deadline_unix_s <= deadline_s


@given(
    st.lists(
        st.builds(
            Signal,
            kind=st.just(Place.EVENT),
            severity=st.sampled_from(Severity),
            source=st.sampled_from("abc"),
            seen_unix_s=st.integers(0, 100).map(float),
            deadline_unix_s=st.none() | st.integers(0, 300).map(float),
            latched=st.just(True),
        ),
        min_size=1,
    ),
    st.randoms(use_true_random=False),
)
def test_signals_join_in_any_order(signals: list[Signal], random: object) -> None:
    def joined(given_: list[Signal]) -> object:
        latch = NoticeLatch()
        for signal in given_:
            latch.raise_("n", signal)
        return latch.state("n")

    shuffled = signals * 2
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert joined(shuffled) == joined(signals)
