"""The local cluster: pods are processes, nodes come and go as the cloud says.

It keeps to what a Kubernetes cluster would do: the controller asks for pods, a pod waits until a
node is free, an agent process is its pod's one container, SIGTERM announces its end and SIGKILL
is its end. The controller cannot tell the difference.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Protocol

from parcae_agent.settings import ExitCode
from parcae_api.membership import Notice
from parcae_operator.observation import Pod, PodPhase

_log = logging.getLogger(__name__)

NOTICE_SOURCE = "fake-cloud"
_DELETION_SECONDS = 30.0
"""How long a pod has that is given back."""
_CRASH_SECONDS = 3.0
"""An agent that ends by itself sooner after its start has crashed."""
_CRASHES_FORGIVEN = 2
_LONGEST_BACKOFF_SECONDS = 30.0


class AgentProcess(Protocol):
    """A running agent: a supervisor that leads its own process group."""

    @property
    def pid(self) -> int:
        """Process id, also of its group."""
        ...

    def on_exit(self, callback: Callable[[int], None]) -> None:
        """Call back once, from another thread, with the exit code."""
        ...


Launch = Callable[[str, str], AgentProcess]
"""(pod, node) → the agent process."""


@dataclass
class _Node:
    name: str
    notice: Notice | None = None
    pod: str | None = None
    left_by: str | None = None
    """The pod that ended of itself after a notice, its state being out."""
    num_crashes: int = 0
    """Agents in a row that ended right after their start."""
    held_back: threading.Timer | None = None
    """Runs while the node waits before it starts another agent."""


@dataclass
class _Pod:
    name: str
    node: str = ""
    phase: PodPhase = PodPhase.PENDING
    process: AgentProcess | None = None
    notice: Notice | None = None
    started_s: float = 0.0


class Loss(StrEnum):
    """How an instance was lost."""

    NOTICED = "noticed"
    SUDDEN = "sudden"
    """With its node, or its process was killed."""


@dataclass(frozen=True)
class Ended:
    """An instance is lost, for the records."""

    pod: str
    node: str
    loss: Loss
    at_unix_s: float


class LocalCluster:
    """Nodes and pods on one machine. Thread-safe."""

    def __init__(
        self, launch: Launch, *, wake: Callable[[], None], on_ended: Callable[[Ended], None]
    ) -> None:
        """``wake`` is called after every change, ``on_ended`` when an instance is lost."""
        self._launch = launch
        self._wake = wake
        self._on_ended = on_ended
        self._lock = threading.RLock()
        self._nodes: dict[str, _Node] = {}
        self._pods: dict[str, _Pod] = {}
        self._created = 0
        self._closed = False

    # What the controller sees and asks for

    def pods(self) -> tuple[Pod, ...]:
        """All pods that have not ended, oldest first."""
        with self._lock:
            return tuple(
                Pod(pod.name, pod.phase, pod.node, pod.notice) for pod in self._pods.values()
            )

    def create_pods(self, count: int) -> None:
        """Ask for more pods."""
        with self._lock:
            for _ in range(count):
                name = f"agent-{self._created}"
                self._created += 1
                self._pods[name] = _Pod(name)
            self._bind()

    def delete_pods(self, names: tuple[str, ...]) -> None:
        """Give pods back: one that waits for a node goes at once, the others get a SIGTERM."""
        with self._lock:
            for name in names:
                pod = self._pods.get(name)
                if pod is None or pod.notice is not None:
                    continue
                if pod.process is None:
                    del self._pods[name]
                    continue
                deadline_unix_s = time.time() + _DELETION_SECONDS
                pod.notice = Notice(deadline_unix_s=deadline_unix_s, source="deleted")
                _send(pod.process.pid, signal.SIGTERM)

    # What the cloud does

    def node_up(self, node: str) -> None:
        """See ``Nodes``."""
        with self._lock:
            self._nodes[node] = _Node(node)
            self._bind()
        self._wake()

    def node_noticed(self, node: str, deadline_unix_s: float) -> None:
        """See ``Nodes``. The pod gets its SIGTERM, as a kubelet would send it."""
        with self._lock:
            entry = self._nodes.get(node)
            if entry is None:
                return
            entry.notice = Notice(deadline_unix_s=deadline_unix_s, source=NOTICE_SOURCE)
            pod = self._pods.get(entry.pod or "")
            if pod is not None and pod.process is not None:
                pod.notice = entry.notice
                _send(pod.process.pid, signal.SIGTERM)
        self._wake()

    def node_down(self, node: str) -> None:
        """See ``Nodes``. Everything on it gets SIGKILL."""
        with self._lock:
            entry = self._nodes.pop(node, None)
            if entry is None:
                return
            pod = self._pods.get(entry.pod or "")
            if pod is not None and pod.process is not None:
                _kill_group(pod.process.pid)
                self._end(pod, Loss.NOTICED if entry.notice else Loss.SUDDEN)
            elif entry.left_by is not None:
                self._on_ended(Ended(entry.left_by, node, Loss.NOTICED, time.time()))
        self._wake()

    # For the view

    def node_states(self) -> list[tuple[str, Notice | None, str | None]]:
        """(node, its notice, its pod), in the order they joined."""
        with self._lock:
            return [(n.name, n.notice, n.pod) for n in self._nodes.values()]

    def close(self) -> None:
        """Kill what is left."""
        with self._lock:
            self._closed = True
            for node in self._nodes.values():
                if node.held_back is not None:
                    node.held_back.cancel()
            for pod in list(self._pods.values()):
                if pod.process is not None:
                    _kill_group(pod.process.pid)
            self._pods.clear()

    def is_empty(self) -> bool:
        """Whether no process runs any more."""
        with self._lock:
            return not any(pod.process for pod in self._pods.values())

    def _bind(self) -> None:
        """Give waiting pods to free nodes that are not about to go."""
        free = [
            n
            for n in self._nodes.values()
            if n.pod is None and n.notice is None and n.held_back is None
        ]
        waiting = [p for p in self._pods.values() if p.phase is PodPhase.PENDING]
        for node, pod in zip(free, waiting, strict=False):
            if self._closed:
                return
            self._start(node, pod)

    def _start(self, node: _Node, pod: _Pod) -> None:
        try:
            process = self._launch(pod.name, node.name)
        except (OSError, EOFError) as error:
            _log.warning("%s does not start on %s: %s", pod.name, node.name, error)
            self._hold_back(node, lived_s=0.0)
            return
        node.pod, pod.node, pod.phase = pod.name, node.name, PodPhase.RUNNING
        pod.process, pod.started_s = process, time.monotonic()
        process.on_exit(partial(self._exited, pod.name))

    def _exited(self, name: str, code: int) -> None:
        with self._lock:
            pod = self._pods.get(name)
            if pod is None:
                return  # its node went first
            if pod.process is not None:
                _kill_group(pod.process.pid, leader_lives=False)
            # A notice that comes before the agent can hear it ends it, too.
            left = code in (ExitCode.DONE, -signal.SIGTERM)
            announced = left and pod.notice is not None
            self._end(pod, _loss(code, left=left, announced=announced))
            node = self._nodes.get(pod.node)
            if node is not None and node.pod == name:
                node.pod = None
                node.left_by = name if announced else None
                if not announced:
                    self._hold_back(node, lived_s=time.monotonic() - pod.started_s)
            self._bind()
        self._wake()

    def _hold_back(self, node: _Node, lived_s: float) -> None:
        """Start the next agent at once, or later and later where they keep ending at their start.

        So a kubelet does (CrashLoopBackOff), and an agent that cannot start does no harm.
        """
        if lived_s >= _CRASH_SECONDS:
            node.num_crashes = 0
            return
        node.num_crashes += 1
        if self._closed or node.num_crashes < _CRASHES_FORGIVEN:
            return
        delay_s = min(_LONGEST_BACKOFF_SECONDS, 2.0 ** (node.num_crashes - _CRASHES_FORGIVEN))
        node.held_back = threading.Timer(delay_s, self._release, [node])
        node.held_back.daemon = True
        node.held_back.start()

    def _release(self, node: _Node) -> None:
        with self._lock:
            node.held_back = None
            self._bind()
        self._wake()

    def _end(self, pod: _Pod, loss: Loss | None) -> None:
        del self._pods[pod.name]
        if loss is not None:
            self._on_ended(Ended(pod.name, pod.node, loss, time.time()))


def _loss(code: int, *, left: bool, announced: bool) -> Loss | None:
    """How the end of an agent counts; None where it is no loss, or counts with its node's end."""
    if announced or code == ExitCode.USER_CODE:
        return None
    return Loss.NOTICED if left else Loss.SUDDEN  # left: somebody sent it a SIGTERM


def _send(pid: int, signal_: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal_)


def _kill_group(pid: int, *, leader_lives: bool = True) -> None:
    """Kill a supervisor and its workers, which share its process group."""
    # The supervisor itself by its own id too: it may not lead its group yet. Once it has
    # ended, its id may belong to somebody else.
    for kill in (os.killpg, os.kill) if leader_lives else (os.killpg,):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
