"""A job's pods on Kubernetes: the ``Cluster`` that its loop sees and acts on.

The loop runs on a thread of its own; calls to the API server are made on the event loop and waited
for. A call whose outcome is unknown makes the next one wait for a complete list.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, TypeVar

from parcae_api.events import InstanceLost
from parcae_api.job import ParcaeJob
from parcae_api.membership import Membership
from parcae_operator.kube.api import ClusterApi
from parcae_operator.kube.errors import ClusterError, ClusterRefused, ClusterUnavailable
from parcae_operator.kube.labels import JobKey
from parcae_operator.kube.pace import Pace
from parcae_operator.kube.pod_template import agent_config, grace_seconds, make_pod
from parcae_operator.kube.settings import OperatorSettings
from parcae_operator.kube.store import ClusterStore, SeenPod
from parcae_operator.observation import Crash, Pod, PodPhase, Trouble
from parcae_operator.signals import Blame, Loss, Severity, earliest

_log = logging.getLogger(__name__)

T = TypeVar("T")
_CALL_S = 30.0
_MOST_AT_ONCE = 8
"""Pods asked for in one turn of the loop: it must not be long in answering a notice."""
_STALE_S = 10.0
_CRASHED_KEPT = 5
"""Pods of crashed code that stay, so that their logs can be read."""
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


_NEVER_RAN = (None, Loss.DELETED, Loss.NODE_GONE, Loss.NODE_REPLACED, Loss.NEVER_STARTED)
"""Ends that say nothing of what the next pod will do."""


@dataclass
class _Life:
    """What is remembered of a pod while it lives."""

    pod: str
    node: str = ""
    was_on_board: bool = False
    noticed: bool = False
    is_over: bool = False
    is_wanted: bool = True
    """Its end is a loss: nobody gave it back of their own will."""


class PodCluster:
    """See ``parcae_operator.loop.Cluster``.

    Args:
        job: Whose pods; replaced when the user edits it.
        api: Calls to the API server.
        store: What the cluster shows.
        settings: The operator's.
        loop: The event loop that ``api`` belongs to.
        agents: The agents on the board, by incarnation.
        report: Takes losses of instances.
    """

    def __init__(
        self,
        job: ParcaeJob,
        api: ClusterApi,
        store: ClusterStore,
        settings: OperatorSettings,
        loop: asyncio.AbstractEventLoop,
        *,
        agents: Callable[[], dict[str, Membership]],
        report: Callable[[InstanceLost], None],
    ) -> None:
        self.job = job
        self._api = api
        self._store = store
        self._settings = settings
        self._loop = loop
        self._agents = agents
        self._report = report
        self._key = JobKey(job.metadata.namespace, job.metadata.name)
        self._lives: dict[str, _Life] = {}
        self._buried: set[tuple[str, bool]] = set()
        """UIDs, and whether by force: what a silent kubelet does not confirm comes up again."""
        self._given_back: set[str] = set()
        self._pace = Pace()
        self._deletions = Pace()
        self._births = Pace()
        """Grows while pods keep ending before their agents are heard of."""
        self._in_doubt_since_s: float | None = None
        self._trouble: Trouble | None = None

    @property
    def trouble(self) -> Trouble | None:
        """Why pods cannot be asked for; None while they can."""
        # Where nobody has tried for long, no pods are wanted any more.
        return self._trouble if self._pace.overdue_s < _STALE_S else None

    def listed(self, asked_s: float) -> None:
        """A complete list was taken in that was asked for at that time, by ``time.monotonic``."""
        if self._in_doubt_since_s is not None and asked_s > self._in_doubt_since_s:
            self._in_doubt_since_s = None

    def pods(self) -> tuple[Pod, ...]:
        """All pods that are there, oldest first."""
        agents = {agent.pod: agent for agent in self._agents().values()}
        for each in self._all():
            if (agent := agents.get(each.name)) is not None:
                self._store.heard_agent(each.uid, agent)
        seen = self._all()
        pods = tuple(_as_pod(pod, pod.name in agents) for pod in seen)
        for each, pod in zip(seen, pods, strict=True):
            self._follow(each, pod, agents.get(pod.name))
        return pods

    def create_pods(self, count: int) -> None:
        """Ask for more, unless asking has just failed or its outcome is unknown."""
        if self._in_doubt_since_s is not None:
            return
        if not (self._pace.may_go() and self._births.may_go()):
            return
        for _ in range(min(count, _MOST_AT_ONCE)):
            try:
                raw = self.call(self._api.create_pod(self._new_pod()))
            except ClusterRefused as error:
                self._failed(Trouble("PodsRefused", str(error)), None)
                return
            except ClusterUnavailable as error:
                self._in_doubt_since_s = time.monotonic()
                self._failed(Trouble("ApiServerUnavailable", str(error)), error.retry_after_s)
                return
            self._store.saw_pod(raw)
        self._pace.succeeded()
        self._trouble = None

    def delete_pods(self, names: tuple[str, ...]) -> None:
        """Give pods back; each gets its SIGTERM and its grace."""
        for seen in self._all():
            if seen.name not in names or seen.uid in self._given_back:
                continue
            if self._delete([seen], grace_s=None):
                self._given_back.add(seen.uid)
                life = self._lives.setdefault(seen.uid, _Life(seen.name))
                life.is_wanted = life.noticed

    def delete_all(self, *, keep_crashed: bool, grace_s: int) -> bool:
        """Delete what is left of the job; whether nothing is left to delete.

        Args:
            keep_crashed: Leave pods whose code crashed, for their logs.
            grace_s: Seconds that the others have left.
        """
        left = [pod for pod in self._all() if not (keep_crashed and _crash(pod) is not None)]
        self._delete([p for p in left if p.reading.deadline_unix_s is None], grace_s=grace_s)
        return not left

    def bury(self) -> None:
        """Delete the objects of pods that are gone; those of crashed code stay, up to a few."""
        seen = self._all()
        crashed = [pod for pod in seen if _crash(pod) is not None]
        kept = {pod.uid for pod in crashed[-_CRASHED_KEPT:]}
        # An earlier job of this name may have left some while no operator was there.
        strangers = self._store.strangers_of(self._key, self.job.metadata.uid)
        for pod in (*seen, *strangers):
            gone = pod.reading.phase is PodPhase.GONE or pod in strangers
            force = pod.reading.may_force_delete
            if not gone or pod.uid in kept or (pod.uid, force) in self._buried:
                continue
            if self._delete([pod], grace_s=0 if force else None):
                self._buried.add((pod.uid, force))
        present = {pod.uid for pod in (*seen, *strangers)}
        self._buried = {each for each in self._buried if each[0] in present}
        self._given_back &= present

    def _follow(self, seen: SeenPod, pod: Pod, agent: Membership | None) -> None:
        """Report the end of an instance that had joined, once."""
        life = self._lives.setdefault(seen.uid, _Life(seen.name))
        life.node = pod.node or life.node
        # One that is gone has none any more.
        noticed = pod.notice is not None or (agent is not None and agent.notice is not None)
        life.noticed = life.noticed or noticed
        if agent is not None and not life.was_on_board:
            life.was_on_board = True
            self._births.succeeded()
        was_over, life.is_over = life.is_over, pod.phase is PodPhase.GONE
        if was_over or not life.is_over:
            return  # a node that was silent may come back, and be lost again
        loss = seen.reading.loss
        if not life.was_on_board:
            if loss not in _NEVER_RAN:
                self._births.failed()
        elif pod.crash is None and life.is_wanted and loss is not Loss.WORKER_LOST:
            self._lost(pod.name, life, noticed=life.noticed or seen.reading.succeeded)

    def vanished(self) -> None:
        """Report instances whose objects went before anybody saw that they had ended."""
        present = {pod.uid for pod in self._all()}
        for uid in [uid for uid in self._lives if uid not in present]:
            life = self._lives.pop(uid)
            if life.was_on_board and life.is_wanted and not life.is_over:
                self._lost(life.pod, life, noticed=life.noticed)

    def _lost(self, pod: str, life: _Life, *, noticed: bool) -> None:
        self._report(
            InstanceLost(at_unix_s=time.time(), incarnation=pod, node=life.node, noticed=noticed)
        )

    def _new_pod(self) -> dict[str, Any]:
        suffix = "".join(secrets.choice(_NAME_LETTERS) for _ in range(6))
        name = f"{self.job.metadata.name}-{suffix}"
        config = agent_config(
            self.job, name, self._settings, grace_seconds(self.job, self._settings)
        )
        return make_pod(self.job, name, agent_config=config, settings=self._settings)

    def _all(self) -> tuple[SeenPod, ...]:
        return self._store.pods_of(self._key, self.job.metadata.uid)

    def _delete(self, pods: list[SeenPod], *, grace_s: int | None) -> bool:
        """Whether all are asked to go; the loop must not wait here for a server that is away."""
        done = True
        for pod in pods:
            if not self._deletions.may_go():
                return False
            try:
                self.call(
                    self._api.delete_pod(self._key.namespace, pod.name, pod.uid, grace_s=grace_s)
                )
            except ClusterError as error:
                _log.info("%s is not deleted yet: %s", pod.name, error)
                self._deletions.failed(getattr(error, "retry_after_s", None))
                done = False
            else:
                self._deletions.succeeded()
        return done

    def _failed(self, trouble: Trouble, retry_after_s: float | None) -> None:
        if self._trouble != trouble:
            _log.warning("%s: no pods can be asked for: %s", self._key, trouble.message)
        self._trouble = trouble
        self._pace.failed(retry_after_s)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Make a call to the API server on its event loop, from another thread.

        Raises:
            ClusterError: as the call does, or because its answer was not awaited.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(_CALL_S)
        except (TimeoutError, CancelledError) as error:
            future.cancel()
            raise ClusterUnavailable("the API server's answer was not awaited") from error


def _as_pod(seen: SeenPod, on_board: bool) -> Pod:
    reading = seen.reading
    # Neither its node nor its agent is heard of. Should both come back, it counts again.
    is_silent = seen.node_state.severity is Severity.SUSPECT and not on_board
    is_gone = reading.phase is PodPhase.GONE
    is_gone = is_gone or (is_silent and reading.phase is PodPhase.RUNNING)
    return Pod(
        name=seen.name,
        phase=PodPhase.GONE if is_gone else reading.phase,
        node=reading.node_name,
        notice=None if is_gone else earliest(reading.notice, seen.node_state.notice),
        hinted=seen.node_state.severity is Severity.HINT,
        crash=_crash(seen),
        trouble=_held_up(seen),
    )


def _crash(seen: SeenPod) -> Crash | None:
    loss = seen.reading.loss
    if loss is None or loss.blame is Blame.INFRASTRUCTURE:
        return None
    if seen.reading.phase is not PodPhase.GONE:
        return None
    detail = seen.reading.detail or f"exit code {seen.reading.exit_code}"
    at_unix_s = seen.reading.ended_unix_s or seen.created_unix_s
    return Crash(at_unix_s=at_unix_s, message=f"pod {seen.name} ended: {loss.value}: {detail}")


def _held_up(seen: SeenPod) -> str:
    held = seen.reading.held_up
    if held is None or held is Loss.UNSCHEDULABLE:
        return ""
    if held is Loss.NOT_CREATED:
        return (
            f"{held.value}: it was given node {seen.reading.node_name} minutes ago and no container"
            " runs: a large image, or a ConfigMap, Secret or volume that is not there;"
            f" `kubectl describe pod {seen.name}` says which"
        )
    return f"{held.value}: {seen.reading.detail}"
