"""What the cluster shows, from watches that lose things and lists that come late."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from kube_objects import Object, deleting, ended, make_node, make_pod, next_version, rfc3339

from parcae_operator.kube.labels import JobKey
from parcae_operator.kube.store import ClusterStore, SeenPod
from parcae_operator.observation import PodPhase
from parcae_operator.signals import Loss, Severity

GPT, BERT = JobKey("team", "gpt"), JobKey("team", "bert")
NOW = 1_900_000_010.0
DOOMED: Object = {
    "key": "aws-node-termination-handler/spot-itn",
    "value": "x",
    "effect": "NoSchedule",
}
"""A taint that says for sure that an instance goes."""


class Seen:
    """A store, and which jobs it woke."""

    def __init__(self) -> None:
        self.now = NOW
        self.woken: list[JobKey] = []
        self.store = ClusterStore(on_change=self.woken.append, clock=lambda: self.now)

    def pods(self, job: str = "gpt") -> tuple[SeenPod, ...]:
        return self.store.pods_of(JobKey("team", job), f"uid-of-{job}")

    def names(self, job: str = "gpt") -> list[str]:
        return [pod.name for pod in self.pods(job)]

    def pod(self, name: str = "gpt-aaaaaa") -> SeenPod:
        (found,) = (pod for pod in self.pods() if pod.name == name)
        return found

    def woke(self) -> list[JobKey]:
        woken, self.woken[:] = list(self.woken), []
        return woken


@pytest.fixture
def seen() -> Seen:
    return Seen()


# Pods.


def test_pods_belong_to_their_job_oldest_first(seen: Seen) -> None:
    seen.store.saw_pod(make_pod("gpt-b", created_s=NOW - 5))
    seen.store.saw_pod(make_pod("gpt-a", created_s=NOW - 9))
    seen.store.saw_pod(make_pod("bert-a", job="bert"))
    assert seen.names() == ["gpt-a", "gpt-b"]
    assert seen.names("bert") == ["bert-a"]
    assert seen.woke() == [GPT, GPT, BERT]
    assert seen.pod("gpt-a").created_unix_s == NOW - 9


def test_pods_that_are_not_ours_are_left_out(seen: Seen) -> None:
    strange = make_pod()
    strange["metadata"]["labels"] = None
    seen.store.saw_pod(strange)
    seen.store.saw_pod({"metadata": {"name": "x", "namespace": "team"}})
    assert seen.store._pods == {}
    assert seen.woke() == []


def test_pods_of_an_earlier_job_of_that_name_are_strangers(seen: Seen) -> None:
    seen.store.saw_pod(make_pod("gpt-old", job_uid="uid-of-earlier"))
    seen.store.saw_pod(make_pod("gpt-new"))
    assert seen.names() == ["gpt-new"]
    assert [p.name for p in seen.store.strangers_of(GPT, "uid-of-gpt")] == ["gpt-old"]


def test_a_pod_goes_through_its_life(seen: Seen) -> None:
    pod = make_pod()
    seen.store.saw_pod(pod)
    assert seen.pod().reading.phase is PodPhase.PENDING
    seen.store.saw_node(make_node())
    running = make_pod(node="node-1")
    seen.store.saw_pod(running)
    assert seen.pod().reading.phase is PodPhase.RUNNING
    assert seen.pod().node is not None
    seen.store.saw_pod(deleting(running))
    notice = seen.pod().reading.notice
    assert notice is not None
    assert notice.deadline_unix_s == 1_900_000_130
    seen.store.saw_pod(ended(running, 0))
    assert seen.pod().reading.phase is PodPhase.GONE
    seen.store.lost_pod(running)
    assert seen.pods() == ()
    assert seen.woke() == [GPT] * 5


def test_old_versions_change_nothing(seen: Seen) -> None:
    running = make_pod(node="node-1", version=200)
    seen.store.saw_pod(running)
    seen.woke()
    seen.store.saw_pod(make_pod(version=199))
    assert seen.pod().reading.phase is PodPhase.RUNNING
    seen.store.saw_pod(running)  # the same once more, from a list
    assert seen.woke() == []


def test_versions_are_numbers_not_text(seen: Seen) -> None:
    seen.store.saw_pod(make_pod(version=999))
    seen.store.saw_pod(make_pod(node="node-1", version=1000))
    assert seen.pod().reading.phase is PodPhase.RUNNING


@pytest.mark.parametrize("seed", range(10))
def test_in_whatever_order_events_come_the_last_word_counts(seen: Seen, seed: int) -> None:
    pending = make_pod(version=100)
    running = make_pod(node="node-1", version=101)
    over = {**ended(running, 42)}
    over["metadata"] = {**over["metadata"], "resourceVersion": "102"}
    events = [pending, running, over, running, pending]
    random.Random(seed).shuffle(events)
    for event in events:
        seen.store.saw_pod(event)
    assert seen.pod().reading.loss is Loss.CRASHED


def test_a_late_event_does_not_bring_a_deleted_pod_back(seen: Seen) -> None:
    pod = make_pod()
    seen.store.saw_pod(pod)
    seen.store.lost_pod(pod)
    seen.store.saw_pod(make_pod(node="node-1"))
    seen.store.saw_all_pods([pod], time.monotonic() - 1)  # a list that was slow
    assert seen.pods() == ()


def test_a_deletion_that_no_watch_told_is_found_by_the_list(seen: Seen) -> None:
    seen.store.saw_pod(make_pod("gpt-a"))
    seen.store.saw_pod(make_pod("gpt-b"))
    seen.woke()
    seen.store.saw_all_pods([make_pod("gpt-b")], time.monotonic())
    assert seen.names() == ["gpt-b"]
    assert GPT in seen.woke()


def test_a_pod_made_while_the_list_was_under_way_stays(seen: Seen) -> None:
    asked_s = time.monotonic()
    seen.store.saw_pod(make_pod("gpt-young"))
    seen.store.saw_all_pods([], asked_s)
    assert seen.names() == ["gpt-young"]
    seen.store.saw_all_pods([], time.monotonic())
    assert seen.names() == []


def test_a_list_of_a_thousand_pods_wakes_each_job_only_for_news(seen: Seen) -> None:
    pods = [make_pod(f"gpt-{i}") for i in range(500)] + [
        make_pod(f"bert-{i}", job="bert") for i in range(500)
    ]
    seen.store.saw_all_pods(pods, time.monotonic())
    seen.woke()
    seen.store.saw_all_pods(pods, time.monotonic())
    assert seen.woke() == []
    seen.store.saw_all_pods([p for p in pods if p["metadata"]["name"] != "gpt-7"], time.monotonic())
    assert seen.woke() == [GPT]


def test_the_dead_are_not_remembered_for_ever(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = make_pod()
    seen.store.saw_pod(pod)
    seen.store.lost_pod(pod)
    seen.store.saw_all_pods([], time.monotonic() + 601)
    assert seen.store._gone == {}


def test_what_is_kept_of_a_pod_is_small(seen: Seen) -> None:
    pod = make_pod(annotations={"big": "x" * 10_000})
    seen.store.saw_pod(pod)
    assert len(repr(seen.store._pods)) < 2000


# Nodes.


def placed(seen: Seen, *, job: str = "gpt", node: str = "node-1") -> None:
    seen.store.saw_node(make_node(node))
    seen.store.saw_pod(make_pod(f"{job}-aaaaaa", job=job, node=node))
    seen.pods(job)
    seen.woke()


def test_a_heartbeat_wakes_nobody(seen: Seen) -> None:
    placed(seen)
    for beat in range(5):
        seen.now += 10
        seen.store.saw_node(make_node(heartbeat_s=NOW + 10 * beat))
    assert seen.woke() == []


def test_a_taint_wakes_the_jobs_on_the_node(seen: Seen) -> None:
    placed(seen)
    seen.store.saw_pod(make_pod("bert-aaaaaa", job="bert", node="node-2"))
    seen.woke()
    seen.store.saw_node(make_node(taints=[DOOMED]))
    assert seen.woke() == [GPT]
    notice = seen.pod().node_state.notice
    assert notice is not None
    assert notice.deadline_unix_s > NOW
    seen.now += 3
    seen.store.saw_node(make_node(taints=[DOOMED]))  # a heartbeat of the doomed
    assert seen.woke() == []


def test_a_notice_is_never_taken_back(seen: Seen) -> None:
    placed(seen)
    seen.store.saw_node(make_node(taints=[DOOMED]))
    seen.store.saw_node(make_node())
    assert seen.pod().node_state.severity is Severity.DOOMED


def test_a_node_that_is_deleted_takes_its_pods_along(seen: Seen) -> None:
    placed(seen)
    seen.store.lost_node(make_node())
    assert seen.woke() == [GPT]
    reading = seen.pod().reading
    assert (reading.phase, reading.loss) == (PodPhase.GONE, Loss.NODE_GONE)
    assert reading.may_force_delete


def test_a_nodes_deletion_that_no_watch_told_is_found_by_the_list(seen: Seen) -> None:
    placed(seen)
    seen.now += 5
    seen.store.saw_all_nodes([], time.monotonic())
    assert GPT in seen.woke()
    assert seen.pod().reading.loss is Loss.NODE_GONE


def test_a_node_that_came_while_the_list_was_under_way_stays(seen: Seen) -> None:
    asked_s = time.monotonic() - 10
    placed(seen)
    seen.store.saw_all_nodes([], asked_s)
    assert seen.pod().reading.phase is PodPhase.RUNNING


def test_a_clock_that_is_set_back_hides_no_deletion_and_no_sign(seen: Seen) -> None:
    placed(seen)
    seen.now -= 3600
    cordoned = make_node()
    cordoned["spec"]["unschedulable"] = True
    seen.store.saw_all_nodes([cordoned], time.monotonic())
    assert seen.pod().node_state.severity is Severity.HINT
    seen.store.saw_all_nodes([], time.monotonic())
    assert seen.pod().reading.loss is Loss.NODE_GONE


@pytest.mark.parametrize("deletion", ["seen", "missed", "late"])
def test_a_node_of_the_same_name_is_another(seen: Seen, deletion: str) -> None:
    placed(seen)
    seen.now += 60
    second = make_node(uid="second", created_s=NOW + 50)
    if deletion == "seen":
        seen.store.lost_node(make_node())
    seen.store.saw_node(second)
    if deletion == "late":
        seen.store.lost_node(make_node())
    assert GPT in seen.woke()
    reading = seen.pod().reading
    assert reading.phase is PodPhase.GONE
    assert reading.loss in (Loss.NODE_GONE, Loss.NODE_REPLACED)
    # A pod that is bound to the second one lives.
    seen.store.saw_pod(make_pod("gpt-b", node="node-1", bound_s=NOW + 55, created_s=NOW))
    assert seen.pod("gpt-b").reading.phase is PodPhase.RUNNING
    assert seen.pod().reading.phase is PodPhase.GONE
    seen.store.saw_all_nodes([second], time.monotonic())
    assert seen.pod("gpt-b").reading.phase is PodPhase.RUNNING


def test_the_second_nodes_taint_is_no_notice_for_the_firsts_pod(seen: Seen) -> None:
    placed(seen)
    seen.store.lost_node(make_node())
    seen.store.saw_node(make_node(uid="second", created_s=NOW, taints=[DOOMED]))
    assert seen.pod().node_state.severity is Severity.GONE


# A new operator, which has seen nothing.


def test_a_pod_whose_node_is_not_heard_of_yet_lives(seen: Seen) -> None:
    seen.store.saw_pod(make_pod(node="node-1", bound_s=NOW - 5))
    assert seen.pod().reading.phase is PodPhase.RUNNING
    seen.store.saw_all_nodes([], time.monotonic())  # the list may be older than the node
    assert seen.pod().reading.phase is PodPhase.RUNNING


def test_a_pod_whose_node_no_list_has_is_lost(seen: Seen) -> None:
    seen.store.saw_pod(make_pod(node="node-1", bound_s=NOW - 3600))
    assert seen.pod().reading.phase is PodPhase.RUNNING
    seen.store.saw_all_nodes([make_node("node-2")], time.monotonic())
    reading = seen.pod().reading
    assert (reading.phase, reading.loss) == (PodPhase.GONE, Loss.NODE_GONE)


def test_a_pod_on_an_earlier_node_of_that_name_is_lost(seen: Seen) -> None:
    seen.store.saw_pod(make_pod(node="node-1", bound_s=NOW - 3600))
    seen.store.saw_all_nodes([make_node(created_s=NOW - 60)], time.monotonic())
    assert seen.pod().reading.loss is Loss.NODE_REPLACED


# Events about nodes.


def node_event(reason: str, at_s: float, node: str = "node-1") -> Object:
    return {
        "metadata": {"name": "e", "resourceVersion": next_version()},
        "involvedObject": {"kind": "Node", "name": node},
        "reason": reason,
        "type": "Warning",
        "lastTimestamp": rfc3339(at_s),
    }


def test_an_event_raises_what_is_known_of_a_node(seen: Seen) -> None:
    placed(seen)
    seen.store.saw_event(node_event("SpotInterruption", NOW))
    assert seen.woke() == [GPT]
    assert seen.pod().node_state.severity is Severity.DOOMED
    seen.store.saw_event(node_event("SpotInterruption", NOW))
    assert seen.woke() == []


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"involvedObject": None},
        node_event("SpotInterruption", NOW, node="another"),
        node_event("Whatever", NOW),
        node_event("SpotInterruption", NOW - 7200),
    ],
)
def test_other_events_say_nothing(seen: Seen, event: dict[str, Any]) -> None:
    placed(seen)
    seen.store.saw_event(event)
    assert seen.woke() == []
    assert seen.pod().node_state.severity is Severity.HEALTHY


# Reading is cheap, and not stale.


def test_a_reading_serves_until_something_changes_or_time_passes(seen: Seen) -> None:
    placed(seen)
    first = seen.pod()
    assert seen.pod() is first
    seen.store.saw_node(make_node(taints=[DOOMED]))
    assert seen.pod() is not first
    second = seen.pod()
    seen.now += 60
    assert seen.pod() is not second


def test_any_word_is_a_sign_of_life(seen: Seen) -> None:
    pod, node = make_pod(), make_node()
    for call in (
        lambda: seen.store.saw_pod(pod),
        lambda: seen.store.lost_pod(pod),
        lambda: seen.store.saw_node(node),
        lambda: seen.store.lost_node(node),
        lambda: seen.store.saw_event({}),
    ):
        seen.store.heard_s = 0.0
        call()
        assert seen.store.heard_s > 0
