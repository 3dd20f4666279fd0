"""What the cluster shows, as far as this operator has heard: pods of jobs, nodes, their signals.

Watches fill it and are hints: one that was cut loses deletions. Complete lists come now and then
and prune it. Thread-safe: jobs read it from threads of their own.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from parcae_api.membership import Membership
from parcae_operator.kube.labels import JobKey, owner_of
from parcae_operator.kube.raw_objects import (
    Object,
    bound_unix_s,
    resource_version,
    trimmed,
    unix_s,
    zone_of,
)
from parcae_operator.signals import (
    NodeReading,
    NodeState,
    NoticeLatch,
    PodReading,
    Severity,
    SignalSettings,
    event_node,
    read_event,
    read_node,
    read_pod,
)

SIGTERM = "sigterm"
"""What agents name as the source of a notice that their kubelet gave them."""
_BINDING_S = 60.0
"""A node may be heard of so much later than a pod on it."""
_FRESH_S = 5.0
"""How long a reading of a pod serves when nothing has changed: jobs look several times a second,
and only deadlines and signals that expire depend on the time."""


@dataclass(frozen=True)
class SeenPod:
    """A pod with what its node tells."""

    uid: str
    name: str
    created_unix_s: float
    reading: PodReading
    node: NodeReading | None
    node_state: NodeState


@dataclass(frozen=True)
class SeenNode:
    """A node, for those who count them."""

    zone: str
    """Empty where nothing tells."""
    spot: bool
    severity: Severity


@dataclass(frozen=True)
class _Pod:
    key: JobKey
    job_uid: str
    raw: Object
    version: int
    heard_s: float


@dataclass(frozen=True)
class _Read:
    read_unix_s: float
    seen: SeenPod


class ClusterStore:
    """Pods and nodes.

    Args:
        settings: How nodes are read.
        on_change: Told which jobs' pods or nodes have changed, from the caller's thread.
        on_worse: Told how a node stands that has come to stand worse, from the caller's thread.
        clock: Unix time in seconds.
    """

    def __init__(
        self,
        *,
        on_change: Callable[[JobKey], None],
        on_worse: Callable[[NodeState], None] = lambda state: None,
        settings: SignalSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings or SignalSettings()
        self._on_change = on_change
        self._on_worse = on_worse
        self._clock = clock
        self._lock = threading.RLock()
        self._pods: dict[str, _Pod] = {}
        self._by_job: defaultdict[JobKey, set[str]] = defaultdict(set)
        self._read: dict[str, _Read] = {}
        self._node_of: dict[str, NodeReading] = {}
        """By pod: the node that it was seen on. Another of that name is none of its."""
        self._gone: dict[str, float] = {}
        """UIDs of pods that are deleted: a late event must not bring them back."""
        self._nodes: dict[str, NodeReading] = {}
        """By name; which incarnation it is, the reading's UID tells."""
        self._node_heard_s: dict[str, float] = {}
        """When a node was last heard of, by name, by ``time.monotonic``."""
        self._zones: dict[str, str] = {}
        """Of nodes, by name."""
        self._all_nodes_seen_unix_s: float | None = None
        self._latch = NoticeLatch()
        self.heard_s = time.monotonic()
        """When anything was last heard of the cluster, by ``time.monotonic``."""

    # What is heard.

    def saw_pod(self, raw: Object) -> None:
        """A pod, from a watch, a list, or as the answer to its creation."""
        key, job_uid = owner_of(raw)
        uid = str(raw.get("metadata", {}).get("uid", ""))
        if not (key.name and uid):
            return
        with self._lock:
            self.heard_s = time.monotonic()
            known = self._pods.get(uid)
            version = resource_version(raw)
            if uid in self._gone or (known is not None and version < known.version):
                return
            self._pods[uid] = _Pod(key, job_uid, trimmed(raw), version, self.heard_s)
            self._by_job[key].add(uid)
            self._read.pop(uid, None)
            if known is not None and known.version == version:
                return
        self._on_change(key)

    def lost_pod(self, raw: Object) -> None:
        """A pod's object is deleted."""
        key, _ = owner_of(raw)
        uid = str(raw.get("metadata", {}).get("uid", ""))
        with self._lock:
            self.heard_s = time.monotonic()
            self._forget(uid)
        self._on_change(key)

    def saw_all_pods(self, raws: Iterable[Object], asked_s: float) -> None:
        """A complete list. What was heard of before it was asked for, and is not in it, is gone.

        Args:
            raws: The list.
            asked_s: When it was asked for, by ``time.monotonic``.
        """
        present = set()
        for raw in raws:
            present.add(str(raw.get("metadata", {}).get("uid", "")))
            self.saw_pod(raw)
        with self._lock:
            missing = [
                (uid, pod.key)
                for uid, pod in self._pods.items()
                if uid not in present and pod.heard_s < asked_s
            ]
            for uid, _ in missing:
                self._forget(uid)
            self._gone = {uid: at_s for uid, at_s in self._gone.items() if at_s > asked_s - 600}
        for key in {key for _, key in missing}:
            self._on_change(key)

    def saw_node(self, raw: Object) -> None:
        """A node, from a watch or a list."""
        with self._lock:
            reading = read_node(raw, self._clock(), self._settings)
            self.heard_s = time.monotonic()
            before = self._nodes.get(reading.name)
            state_before = self._latch.state(reading.uid)
            self._nodes[reading.name] = reading
            self._node_heard_s[reading.name] = self.heard_s
            self._zones[reading.name] = zone_of(raw)
            state = self._latch.observe(reading)
            if before is not None and before.uid != reading.uid:
                self._settle()  # the name has passed on: its earlier node is gone
            same = before is not None and _essence(before) == _essence(reading)
            changed = self._touched(reading.name) if not same or state != state_before else set()
        self._compare(state_before, state)
        for key in changed:
            self._on_change(key)

    def lost_node(self, raw: Object) -> None:
        """A node's object is deleted."""
        name = str(raw.get("metadata", {}).get("name", ""))
        uid = str(raw.get("metadata", {}).get("uid", ""))
        with self._lock:
            self.heard_s = time.monotonic()
            known = self._nodes.get(name)
            if known is None or known.uid != uid:
                return
            del self._nodes[name], self._node_heard_s[name]
            self._zones.pop(name, None)
            self._settle()
            changed = self._touched(name)
        for key in changed:
            self._on_change(key)

    def saw_all_nodes(self, raws: Iterable[Object], asked_s: float) -> None:
        """A complete list of nodes."""
        present = set()
        for raw in raws:
            present.add(str(raw.get("metadata", {}).get("name", "")))
            self.saw_node(raw)
        with self._lock:
            missing = [
                reading
                for name, reading in self._nodes.items()
                if name not in present and self._node_heard_s[name] < asked_s
            ]
        for reading in missing:
            self.lost_node({"metadata": {"name": reading.name, "uid": reading.uid}})
        with self._lock:
            self._all_nodes_seen_unix_s = self._clock() - _age(asked_s)
            self._settle()

    def saw_event(self, raw: Object) -> None:
        """An Event about a node: it may only raise what is known."""
        name = event_node(raw)
        with self._lock:
            self.heard_s = time.monotonic()
            node = self._nodes.get(name or "")
            if node is None:
                return
            signal = read_event(raw, node, self._clock())
            if signal is None:
                return
            before = self._latch.state(node.uid)
            state = self._latch.raise_(node.uid, signal)
            changed = set() if state == before else self._touched(node.name)
        self._compare(before, state)
        for key in changed:
            self._on_change(key)

    def heard_agent(self, pod_uid: str, agent: Membership) -> None:
        """What an agent has heard from its cloud about the machine that its pod is on.

        A SIGTERM is about the pod alone. Whoever calls looks again by itself.
        """
        notice = agent.notice
        about_node = notice is not None and notice.source != SIGTERM
        if not about_node and agent.hint is None:
            return
        with self._lock:
            pod = self._pods.get(pod_uid)
            node = self._node_under(pod_uid, pod)[0] if pod is not None else None
            if node is None:
                return
            before = self._latch.state(node.uid)
            if notice is not None and about_node:
                self._latch.raise_notice(node.uid, notice, self._clock())
            if agent.hint is not None:
                self._latch.raise_hint(node.uid, agent.hint, self._clock())
            state = self._latch.state(node.uid)
            same = state.severity is before.severity
            others = set() if same else self._touched(node.name) - {pod.key if pod else None}
        self._compare(before, state)
        for key in others:
            self._on_change(key)

    def _compare(self, before: NodeState, now: NodeState) -> None:
        if now.severity > before.severity:
            self._on_worse(now)

    # What is known.

    def nodes(self) -> tuple[SeenNode, ...]:
        """All nodes."""
        with self._lock:
            return tuple(
                SeenNode(self._zones.get(name, ""), node.spot, self._latch.state(node.uid).severity)
                for name, node in self._nodes.items()
            )

    def pods_of(self, key: JobKey, job_uid: str) -> tuple[SeenPod, ...]:
        """The pods of a job, oldest first. Those of an earlier job of that name are not its."""
        with self._lock:
            found = [
                self._seen(uid, self._pods[uid])
                for uid in self._by_job.get(key, ())
                if self._pods[uid].job_uid == job_uid
            ]
        return tuple(sorted(found, key=lambda pod: (pod.created_unix_s, pod.name)))

    def strangers_of(self, key: JobKey, job_uid: str) -> tuple[SeenPod, ...]:
        """Pods of earlier jobs of that name."""
        with self._lock:
            return tuple(
                self._seen(uid, self._pods[uid])
                for uid in self._by_job.get(key, ())
                if self._pods[uid].job_uid != job_uid
            )

    def _seen(self, uid: str, pod: _Pod) -> SeenPod:
        now, known = self._clock(), self._read.get(uid)
        if known is not None and 0 <= now - known.read_unix_s < _FRESH_S:
            return known.seen
        node, node_gone = self._node_under(uid, pod)
        state = self._latch.state(node.uid) if node is not None else NodeState(uid="")
        reading = read_pod(pod.raw, node, now, state=state, node_gone=node_gone)
        metadata = pod.raw["metadata"]
        seen = SeenPod(
            uid=uid,
            name=str(metadata.get("name", "")),
            created_unix_s=unix_s(metadata.get("creationTimestamp")),
            reading=reading,
            node=node,
            node_state=state,
        )
        self._read[uid] = _Read(now, seen)
        return seen

    def _node_under(self, uid: str, pod: _Pod) -> tuple[NodeReading | None, bool]:
        """The node that a pod was seen on, and whether that is gone without our having seen it."""
        name = str(pod.raw.get("spec", {}).get("nodeName") or "")
        if not name:
            return None, False
        node, before = self._nodes.get(name), self._node_of.get(uid)
        if before is not None and (node is None or node.uid != before.uid):
            return before, False  # the latch knows that it is gone
        if node is not None:
            self._node_of[uid] = node
            return node, False
        # Never seen. It is gone if a list of all nodes, made after the pod was bound, lacks it.
        bound_s, listed_s = bound_unix_s(pod.raw), self._all_nodes_seen_unix_s
        return None, bool(bound_s and listed_s and listed_s > bound_s + _BINDING_S)

    def _touched(self, node: str) -> set[JobKey]:
        """Jobs with pods on a node that is not as it was: those pods are read anew."""
        on_it = [
            (uid, pod.key)
            for uid, pod in self._pods.items()
            if pod.raw.get("spec", {}).get("nodeName") == node
        ]
        for uid, _ in on_it:
            self._read.pop(uid, None)
        return {key for _, key in on_it}

    def _forget(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._by_job[pod.key].discard(uid)
            if not self._by_job[pod.key]:
                del self._by_job[pod.key]
        self._node_of.pop(uid, None)
        self._read.pop(uid, None)
        self._gone[uid] = time.monotonic()

    def _settle(self) -> None:
        self._read.clear()  # rare, and any node may be gone now
        self._latch.settle({reading.uid for reading in self._nodes.values()}, self._clock())


def _essence(node: NodeReading) -> NodeReading:
    """What matters of a node: its heartbeats do not."""
    return replace(node, read_unix_s=0.0, signals=tuple(_timeless(s) for s in node.signals))


def _timeless(signal: Any) -> Any:
    # A deadline counted from each reading anew is the latch's to judge: there it only falls.
    return replace(signal, seen_unix_s=0.0, deadline_unix_s=None)


def _age(asked_s: float) -> float:
    return time.monotonic() - asked_s
