"""Reading a Pod object: does it live, is it lost, and whose fault is that? Pure; never raises."""

from __future__ import annotations

from dataclasses import dataclass

from parcae_operator.observation import PodPhase
from parcae_operator.signals.latch import NodeState
from parcae_operator.signals.model import Loss, NodeReading, PodReading, Severity
from parcae_operator.signals.raw import Raw, child, items, number, text, time_s

FORCE_AFTER_S = 30.0
"""How long after a pod's kill time an unready node's kubelet may still report it ended."""

NOT_CREATED_AFTER_S = 120.0
"""How long a pod may be on its node without a word or a container: pulling takes a while."""

AGENT_BAD_INPUT, AGENT_WORKER_LOST = 2, 43
"""How our agent ends; a test holds them equal to its own."""
_SIGKILL, _SIGTERM = 137, 143
_AGENT_ENDS = {AGENT_BAD_INPUT: Loss.CONTAINER_CONFIG, AGENT_WORKER_LOST: Loss.WORKER_LOST}

_DISRUPTIONS = {
    loss.value: loss
    for loss in (
        Loss.EVICTED_BY_API,
        Loss.EVICTED_BY_TAINT,
        Loss.COLLECTED,
        Loss.NODE_SHUTDOWN,
        Loss.PREEMPTED_BY_SCHEDULER,
    )
}
_FAILED_REASONS = {
    "Terminated": Loss.NODE_SHUTDOWN,
    "NodeShutdown": Loss.NODE_SHUTDOWN,
    "Shutdown": Loss.NODE_SHUTDOWN,
    "Evicted": Loss.EVICTED_BY_KUBELET,
    "Preempting": Loss.EVICTED_BY_KUBELET,
    "NodeLost": Loss.NODE_LOST,
    "UnexpectedAdmissionError": Loss.NOT_ADMITTED,
    "NodeAffinity": Loss.NOT_ADMITTED,
    "NodeName": Loss.NOT_ADMITTED,
    "NodePorts": Loss.NOT_ADMITTED,
    "TopologyAffinityError": Loss.NOT_ADMITTED,
    "Taint": Loss.NOT_ADMITTED,
    "TaintToleration": Loss.NOT_ADMITTED,
    "DeadlineExceeded": Loss.OVER_TIME,
}
_HELD_UP = {
    "ErrImagePull": Loss.IMAGE_PULL,
    "ImagePullBackOff": Loss.IMAGE_PULL,
    "InvalidImageName": Loss.IMAGE_PULL,
    "ErrImageNeverPull": Loss.IMAGE_PULL,
    "ImageInspectError": Loss.IMAGE_PULL,
    "RegistryUnavailable": Loss.IMAGE_PULL,
    "CreateContainerConfigError": Loss.CONTAINER_CONFIG,
    "CreateContainerError": Loss.CONTAINER_CONFIG,
    "RunContainerError": Loss.CONTAINER_CONFIG,
}


@dataclass(frozen=True)
class _Ended:
    """How a container ended."""

    exit_code: int
    reason: str
    at_unix_s: float | None = None


def read_pod(
    pod: Raw,
    node: NodeReading | None,
    now_unix_s: float,
    *,
    state: NodeState | None = None,
    node_gone: bool = False,
) -> PodReading:
    """Read a Pod object of the job.

    Args:
        pod: As the API server gives it.
        node: Its node, by the name in its spec; None where that is not known or not bound.
        now_unix_s: The time.
        state: What the latch knows of the node; worse than the node's object alone shows.
        node_gone: A fresh list of the cluster's nodes does not have its node.
    """
    severity = max(
        node.severity if node is not None else Severity.HEALTHY,
        state.severity if state is not None else Severity.HEALTHY,
    )
    kill_s = time_s(pod, "metadata", "deletionTimestamp")
    ended = _ended(pod)
    lost = _lost(pod, node, severity, node_gone, ended)
    leaving = _disruption(pod) or (Loss.DELETED if kill_s is not None else None)
    phase = PodPhase.GONE if lost or _is_over(pod) else _phase(pod)
    return PodReading(
        uid=text(pod, "metadata", "uid"),
        name=text(pod, "metadata", "name"),
        node_name=text(pod, "spec", "nodeName"),
        phase=phase,
        succeeded=text(pod, "status", "phase") == "Succeeded",
        loss=lost or leaving,
        held_up=_held_up(pod, now_unix_s) if phase is PodPhase.PENDING else None,
        deadline_unix_s=kill_s,
        exit_code=ended.exit_code if ended else None,
        ended_unix_s=ended.at_unix_s if ended else None,
        restarts=sum(number(found, "restartCount") or 0 for found in _containers(pod)),
        container_ids=tuple(filter(None, (text(c, "containerID") for c in _containers(pod)))),
        may_force_delete=_may_force_delete(node, severity, node_gone, kill_s, now_unix_s),
        detail=_detail(pod),
    )


def _lost(
    pod: Raw, node: NodeReading | None, severity: Severity, node_gone: bool, ended: _Ended | None
) -> Loss | None:
    """Why nothing of it lives, though nobody may have said so to the API server."""
    if _is_over(pod):
        return _why_over(pod, ended)
    if not text(pod, "spec", "nodeName"):
        return None
    if node_gone or severity is Severity.GONE:
        return Loss.NODE_GONE
    if node is not None and _is_older(pod, node):
        return Loss.NODE_REPLACED
    if severity is Severity.DOOMED and _phase(pod) is PodPhase.PENDING:
        return Loss.NEVER_STARTED  # its image will not be there in time
    if ended is not None and text(pod, "spec", "restartPolicy") == "Never":
        return _why_ended(ended)  # ahead of the pod's phase
    return None


def _is_over(pod: Raw) -> bool:
    return text(pod, "status", "phase") in ("Succeeded", "Failed")


def _why_over(pod: Raw, ended: _Ended | None) -> Loss | None:
    """Disruption first: what a process says while it is being killed tells nothing."""
    if (disrupted := _disruption(pod)) is not None:
        return disrupted
    if text(pod, "status", "phase") == "Succeeded":
        return None
    reason = text(pod, "status", "reason")
    if reason == "Evicted" and _over_limit(pod):
        return Loss.OVER_ITS_LIMIT
    if reason.startswith("OutOf"):  # OutOfcpu, OutOfnvidia.com/gpu
        return Loss.NOT_ADMITTED
    if reason in _FAILED_REASONS:
        return _FAILED_REASONS[reason]
    if ended is not None:
        return _why_ended(ended) or Loss.UNKNOWN
    return Loss.UNKNOWN


def _over_limit(pod: Raw) -> bool:
    """It used more disk than it may, which its successor would do as well."""
    message = text(pod, "status", "message").lower()
    return "exceed" in message and "limit" in message


def _why_ended(ended: _Ended) -> Loss | None:
    if ended.reason == "OOMKilled":
        return Loss.OUT_OF_MEMORY
    if ended.exit_code in (
        _SIGKILL,
        _SIGTERM,
    ):  # a failure of the user's code has a code of its own
        return Loss.KILLED
    if ended.exit_code == 0:
        return None
    return _AGENT_ENDS.get(ended.exit_code, Loss.CRASHED)


def _disruption(pod: Raw) -> Loss | None:
    for condition in items(pod, "status", "conditions"):
        if text(condition, "type") == "DisruptionTarget" and text(condition, "status") == "True":
            return _DISRUPTIONS.get(text(condition, "reason"), Loss.DISRUPTED)
    return None


def _is_older(pod: Raw, node: NodeReading) -> bool:
    """Whether it was bound before its node existed: then to an earlier one of that name.

    Its creation does not tell: a pod that waits is what makes an autoscaler create the node.
    """
    if node.created_unix_s is None or text(pod, "spec", "nodeName") != node.name:
        return False
    bound_s = _bound_unix_s(pod)
    return bound_s is not None and bound_s < node.created_unix_s


def _bound_unix_s(pod: Raw) -> float | None:
    """When it was given its node."""
    scheduled = [
        time_s(condition, "lastTransitionTime")
        for condition in items(pod, "status", "conditions")
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "True"
    ]
    times = (*scheduled, time_s(pod, "status", "startTime"))
    return min((at_s for at_s in times if at_s is not None), default=None)


def _may_force_delete(
    node: NodeReading | None,
    severity: Severity,
    node_gone: bool,
    kill_s: float | None,
    now_unix_s: float,
) -> bool:
    if node_gone or severity is Severity.GONE:
        return True
    overdue = kill_s is not None and now_unix_s >= kill_s + FORCE_AFTER_S
    return overdue and node is not None and not node.ready


def _phase(pod: Raw) -> PodPhase:
    """An unknown phase is the node's silence, not the pod's end."""
    running = text(pod, "status", "phase") in ("Running", "Unknown")
    return PodPhase.RUNNING if running else PodPhase.PENDING


def _held_up(pod: Raw, now_unix_s: float) -> Loss | None:
    for container in _containers(pod):
        found = _HELD_UP.get(text(container, "state", "waiting", "reason"))
        if found is not None:
            return found
    for condition in items(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return Loss.UNSCHEDULABLE
    bound_s = _bound_unix_s(pod)
    if bound_s is not None and now_unix_s - bound_s > NOT_CREATED_AFTER_S:
        return Loss.NOT_CREATED
    return None


def _containers(pod: Raw) -> list[Raw]:
    return [
        *items(pod, "status", "initContainerStatuses"),
        *items(pod, "status", "containerStatuses"),
    ]


def _ended(pod: Raw) -> _Ended | None:
    """How its containers ended: the first that failed, else one that ended well."""
    found = [
        _Ended(
            code,
            text(container, "state", "terminated", "reason"),
            time_s(container, "state", "terminated", "finishedAt"),
        )
        for container in _containers(pod)
        if (code := number(container, "state", "terminated", "exitCode")) is not None
    ]
    init = len(list(items(pod, "status", "initContainerStatuses")))
    failed = next((ended for ended in found if ended.exit_code != 0), None)
    return failed or (found[0] if len(found) > init else None)


def _detail(pod: Raw) -> str:
    """What the cluster says about it, for people."""
    words = [text(pod, "status", "reason"), text(pod, "status", "message")]
    for container in _containers(pod):
        waiting = child(container, "state", "waiting")
        terminated = child(container, "state", "terminated")
        words += [text(waiting, "reason"), text(waiting, "message")]
        words += [text(terminated, "reason"), text(terminated, "message")]
    for condition in items(pod, "status", "conditions"):
        if text(condition, "status") == "False" and text(condition, "type") == "PodScheduled":
            words.append(text(condition, "message"))
    return ": ".join(filter(None, words))[:200]
