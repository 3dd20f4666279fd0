"""Pod objects: which are lost, when the others are killed, and whose fault a failure is."""

from __future__ import annotations

from typing import Any

import pytest
from signal_objects import (
    T0,
    condition,
    ended,
    make_node,
    make_pod,
    rfc3339,
    taint,
    waiting,
)

from parcae_agent.settings import ExitCode
from parcae_api.membership import Notice
from parcae_operator.observation import PodPhase
from parcae_operator.signals import Blame, Loss, NoticeLatch, earliest, read_node, read_pod
from parcae_operator.signals.pod import (
    AGENT_WORKER_LOST,
    FORCE_AFTER_S,
    NOT_CREATED_AFTER_S,
)

INFRA, USER, CONFIG = Blame.INFRASTRUCTURE, Blame.USER_CODE, Blame.CONFIGURATION
NODE = read_node(make_node(), T0)
DOOMED = read_node(make_node("plain", taints=[taint("node.kubernetes.io/out-of-service")]), T0)


def disrupted(reason: str, status: str = "True") -> list[dict[str, Any]]:
    return [condition("DisruptionTarget", status, reason=reason)]


def deleted(kill_s: float) -> dict[str, Any]:
    return {"deletionTimestamp": rfc3339(kill_s), "deletionGracePeriodSeconds": 30}


FAILURES: list[tuple[str, dict[str, Any], Loss, Blame]] = [
    ("kubelet shutdown", {"reason": "Terminated"}, Loss.NODE_SHUTDOWN, INFRA),
    ("rejected in a shutdown", {"reason": "NodeShutdown"}, Loss.NODE_SHUTDOWN, INFRA),
    ("pressure", {"reason": "Evicted", "message": "The node was low on resource: memory."},
     Loss.EVICTED_BY_KUBELET, INFRA),
    ("wrote too much", {"reason": "Evicted", "message":
     "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."},
     Loss.OVER_ITS_LIMIT, USER),
    ("node lost", {"reason": "NodeLost"}, Loss.NODE_LOST, INFRA),
    ("driver not up", {"reason": "UnexpectedAdmissionError"}, Loss.NOT_ADMITTED, INFRA),
    ("no cpu", {"reason": "OutOfcpu"}, Loss.NOT_ADMITTED, INFRA),
    ("no gpu", {"reason": "OutOfnvidia.com/gpu"}, Loss.NOT_ADMITTED, INFRA),
    ("no reason", {}, Loss.UNKNOWN, INFRA),
    ("too long", {"reason": "DeadlineExceeded"}, Loss.OVER_TIME, CONFIG),
    ("user's code", {"containerStatuses": ended(42)}, Loss.CRASHED, USER),
    ("segmentation fault", {"containerStatuses": ended(139)}, Loss.CRASHED, USER),
    ("memory", {"containerStatuses": ended(137, "OOMKilled")}, Loss.OUT_OF_MEMORY, USER),
    ("SIGKILL", {"containerStatuses": ended(137)}, Loss.KILLED, INFRA),
    ("SIGTERM", {"containerStatuses": ended(143)}, Loss.KILLED, INFRA),
    ("a broken image", {"containerStatuses": ended(1)}, Loss.CRASHED, USER),
    ("worker killed", {"containerStatuses": ended(43)}, Loss.WORKER_LOST, INFRA),
    ("bad input", {"containerStatuses": ended(2)}, Loss.CONTAINER_CONFIG, CONFIG),
    ("a failure while drained", {"containerStatuses": ended(42),
     "conditions": disrupted("EvictionByEvictionAPI")}, Loss.EVICTED_BY_API, INFRA),
    ("garbage collected", {"conditions": disrupted("DeletionByPodGC")}, Loss.COLLECTED, INFRA),
    ("taint manager", {"conditions": disrupted("DeletionByTaintManager")},
     Loss.EVICTED_BY_TAINT, INFRA),
    ("kubelet, by condition", {"reason": "Terminated", "conditions":
     disrupted("TerminationByKubelet")}, Loss.NODE_SHUTDOWN, INFRA),
    ("higher priority", {"conditions": disrupted("PreemptionByScheduler")},
     Loss.PREEMPTED_BY_SCHEDULER, INFRA),
    ("a reason of tomorrow", {"conditions": disrupted("Whatever")}, Loss.DISRUPTED, INFRA),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "loss", "blame"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
def test_failed(status: dict[str, Any], loss: Loss, blame: Blame) -> None:
    pod = read_pod(make_pod(phase="Failed", **status), NODE, T0)
    assert (pod.loss, pod.phase) == (loss, PodPhase.GONE)
    assert pod.loss is not None
    assert pod.loss.blame is blame
    assert pod.notice is None


def test_agents_exit_codes_are_read_as_it_writes_them() -> None:
    assert AGENT_WORKER_LOST == ExitCode.WORKER_LOST
    for code in ExitCode:
        raw = make_pod(phase="Failed" if code else "Succeeded", containerStatuses=ended(code))
        loss = read_pod(raw, NODE, T0).loss
        expected = {ExitCode.DONE: None, ExitCode.WORKER_LOST: Loss.WORKER_LOST}
        assert loss is expected.get(code, Loss.CRASHED)


def test_succeeded() -> None:
    pod = read_pod(make_pod(phase="Succeeded", containerStatuses=ended(0, "Completed")), NODE, T0)
    assert (pod.phase, pod.loss, pod.succeeded, pod.exit_code) == (PodPhase.GONE, None, True, 0)


def test_trainer_that_exits_well_in_a_shutdown_is_lost_all_the_same() -> None:
    raw = make_pod(phase="Succeeded", conditions=disrupted("TerminationByKubelet"))
    assert read_pod(raw, NODE, T0).loss is Loss.NODE_SHUTDOWN


def test_running() -> None:
    pod = read_pod(make_pod(), NODE, T0)
    assert (pod.phase, pod.loss, pod.notice, pod.held_up) == (PodPhase.RUNNING, None, None, None)
    assert read_pod(make_pod(phase="Unknown"), None, T0).phase is PodPhase.RUNNING


def test_deleted_pod_runs_until_its_kill_time() -> None:
    pod = read_pod(make_pod(metadata=deleted(T0 + 30)), NODE, T0)
    assert (pod.phase, pod.loss) == (PodPhase.RUNNING, Loss.DELETED)
    assert pod.notice == Notice(deadline_unix_s=T0 + 30, source="pod-Deleted")
    assert not pod.may_force_delete


def test_evicted_pod_says_by_whom() -> None:
    raw = make_pod(metadata=deleted(T0 + 30), conditions=disrupted("EvictionByEvictionAPI"))
    assert read_pod(raw, NODE, T0).notice == Notice(
        deadline_unix_s=T0 + 30, source="pod-EvictionByEvictionAPI"
    )


def test_disruption_that_was_called_off() -> None:
    raw = make_pod(conditions=disrupted("EvictionByEvictionAPI", "False"))
    assert read_pod(raw, NODE, T0).loss is None


def test_node_of_the_same_name_is_another() -> None:
    young = read_node(make_node(metadata={"creationTimestamp": rfc3339(T0 - 60)}), T0)
    pod = read_pod(make_pod(), young, T0)
    assert (pod.phase, pod.loss) == (PodPhase.GONE, Loss.NODE_REPLACED)


def test_pod_that_waited_for_its_node_is_not_older_than_it() -> None:
    """An autoscaler creates a node because a pod waits."""
    young = read_node(make_node(metadata={"creationTimestamp": rfc3339(T0 - 595)}), T0)
    assert read_pod(make_pod(), young, T0).loss is None


def test_node_is_gone() -> None:
    pod = read_pod(make_pod(), None, T0, node_gone=True)
    assert (pod.phase, pod.loss, pod.may_force_delete) == (PodPhase.GONE, Loss.NODE_GONE, True)
    assert read_pod(make_pod(), None, T0).loss is None, "not known is not gone"
    assert read_pod(make_pod(node="", phase="Pending"), None, T0, node_gone=True).loss is None


def test_node_is_out_of_service() -> None:
    pod = read_pod(make_pod(), DOOMED, T0)
    assert (pod.phase, pod.loss, pod.may_force_delete) == (PodPhase.GONE, Loss.NODE_GONE, True)


def test_pod_that_hangs_on_a_silent_node() -> None:
    silent = read_node(make_node(ready="Unknown"), T0)
    raw = make_pod(metadata=deleted(T0))
    assert not read_pod(raw, silent, T0 + FORCE_AFTER_S - 1).may_force_delete
    assert read_pod(raw, silent, T0 + FORCE_AFTER_S).may_force_delete
    assert not read_pod(raw, NODE, T0 + FORCE_AFTER_S).may_force_delete
    assert not read_pod(make_pod(), silent, T0 + 3600).may_force_delete


def test_pending_on_a_node_with_a_notice_never_starts() -> None:
    """Its image is still being pulled: no process hears of anything."""
    itn = taint("aws-node-termination-handler/spot-itn")
    node = read_node(make_node("aws", taints=[itn]), T0)
    raw = make_pod(node.name, "Pending", containerStatuses=waiting("ContainerCreating"))
    pod = read_pod(raw, node, T0)
    assert (pod.phase, pod.loss) == (PodPhase.GONE, Loss.NEVER_STARTED)
    assert read_pod(make_pod(node.name), node, T0).loss is None, "a running one still has time"


def test_latch_knows_more_than_the_object() -> None:
    latch = NoticeLatch()
    itn = taint("aws-node-termination-handler/spot-itn")
    latch.observe(read_node(make_node("aws", taints=[itn]), T0))
    cleared = read_node(make_node("aws"), T0 + 60)
    state = latch.observe(cleared)
    raw = make_pod(cleared.name, "Pending")
    assert read_pod(raw, cleared, T0 + 60, state=state).loss is Loss.NEVER_STARTED
    assert read_pod(raw, cleared, T0 + 60).loss is None


@pytest.mark.parametrize(
    ("reason", "held_up"),
    [
        ("ErrImagePull", Loss.IMAGE_PULL),
        ("ImagePullBackOff", Loss.IMAGE_PULL),
        ("InvalidImageName", Loss.IMAGE_PULL),
        ("CreateContainerConfigError", Loss.CONTAINER_CONFIG),
        ("ContainerCreating", None),
    ],
)
def test_held_up(reason: str, held_up: Loss | None) -> None:
    raw = make_pod(phase="Pending", containerStatuses=waiting(reason))
    pod = read_pod(raw, NODE, T0 - 590 + NOT_CREATED_AFTER_S)
    assert (pod.phase, pod.loss, pod.held_up) == (PodPhase.PENDING, None, held_up)
    assert held_up is None or held_up.blame is CONFIG


def test_no_containers_for_long_on_a_node_that_says_nothing() -> None:
    raw = make_pod(phase="Pending", containerStatuses=waiting("ContainerCreating"))
    late = T0 - 590 + NOT_CREATED_AFTER_S + 1
    assert read_pod(raw, NODE, late).held_up is Loss.NOT_CREATED
    assert Loss.NOT_CREATED.blame is INFRA
    raw["status"]["containerStatuses"] = waiting("ErrImagePull")
    assert read_pod(raw, NODE, late).held_up is Loss.IMAGE_PULL


def test_unschedulable() -> None:
    waits = condition("PodScheduled", "False", reason="Unschedulable", message="0/3 nodes")
    pod = read_pod(make_pod(node="", phase="Pending", conditions=[waits]), None, T0)
    assert (pod.held_up, pod.phase) == (Loss.UNSCHEDULABLE, PodPhase.PENDING)
    assert pod.detail == "0/3 nodes"
    assert Loss.UNSCHEDULABLE.blame is INFRA


def test_container_that_ended_before_its_pod_says_so() -> None:
    pod = read_pod(make_pod(containerStatuses=ended(42)), NODE, T0)
    assert (pod.phase, pod.loss) == (PodPhase.GONE, Loss.CRASHED)


def test_end_is_when_the_kubelet_says_so() -> None:
    statuses = ended(42)
    statuses[0]["state"]["terminated"]["finishedAt"] = rfc3339(T0 - 5)
    failed = read_pod(make_pod(phase="Failed", containerStatuses=statuses), NODE, T0)
    assert failed.ended_unix_s == T0 - 5
    assert read_pod(make_pod(phase="Failed", reason="NodeLost"), NODE, T0).ended_unix_s is None


def test_restarted_container_is_another_process() -> None:
    statuses = [{"containerID": "containerd://2", "restartCount": 3, "state": {"running": {}}}]
    pod = read_pod(make_pod(containerStatuses=statuses), NODE, T0)
    assert (pod.restarts, pod.container_ids) == (3, ("containerd://2",))


def test_earliest() -> None:
    one, two = (Notice(deadline_unix_s=at_s, source="x") for at_s in (1.0, 2.0))
    assert earliest(two, None, one) == one
    assert earliest(None) is None
