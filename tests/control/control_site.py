"""A job on a real board: loops that control it, a cluster in memory, agents written by hand."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from control_world import make_job, make_profile

from parcae_api.board import JobBoard
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_lease import Lease
from parcae_api.events import AnyEvent
from parcae_api.membership import AgentState, Holding, Membership, Notice, WorkerInfo
from parcae_api.plan import Plan
from parcae_api.planning import Planner
from parcae_api.progress import Progress
from parcae_operator.actions import Complete, Fail
from parcae_operator.loop import JobLoop
from parcae_operator.observation import Crash, Pod, PodPhase
from parcae_optimizer.reactive import ReactivePlanner

WAIT_S = 20.0
_jobs = itertools.count()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.005)


class FakeCluster:
    """Pods in memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}
        self.asked_for = 0

    def pods(self) -> tuple[Pod, ...]:
        with self._lock:
            return tuple(self._pods.values())

    def create_pods(self, count: int) -> None:
        with self._lock:
            for _ in range(count):
                name = f"pending{self.asked_for}"
                self.asked_for += 1
                self._pods[name] = Pod(name, PodPhase.PENDING)

    def delete_pods(self, names: tuple[str, ...]) -> None:
        with self._lock:
            for name in names:
                self._pods.pop(name, None)

    def run(self, name: str) -> None:
        """A pod of that name runs, in place of one that was pending."""
        with self._lock:
            pending = [p.name for p in self._pods.values() if p.phase is PodPhase.PENDING]
            if pending:
                del self._pods[pending[0]]
            self._pods[name] = Pod(name, PodPhase.RUNNING, f"node-of-{name}")

    def lose(self, name: str) -> None:
        with self._lock:
            del self._pods[name]

    def crash(self, name: str, message: str, at_unix_s: float) -> None:
        with self._lock:
            crash = Crash(at_unix_s, message)
            self._pods[name] = Pod(name, PodPhase.GONE, f"node-of-{name}", crash=crash)

    def notice(self, name: str) -> None:
        notice = Notice(deadline_unix_s=time.time() + 120, source="test")
        with self._lock:
            self._pods[name] = Pod(name, PodPhase.RUNNING, f"node-of-{name}", notice)


class RunningLoop:
    """A loop on a thread of its own."""

    def __init__(self, loop: JobLoop) -> None:
        self.loop = loop
        self.end: Complete | Fail | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.loop.stop()
        self.join()

    def join(self) -> None:
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the loop goes on"

    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.end = self.loop.run()
        except Exception as error:
            self.error = error


class Site:
    """One job."""

    def __init__(self, endpoint: str, *, least: int = 1, most: int = 4) -> None:
        self.endpoint = endpoint
        self.job = make_job(least=least, most=most)
        self.cluster = FakeCluster()
        self.events: list[AnyEvent] = []
        self._client = EtcdClient([endpoint], timeout_s=1.0, patience_s=WAIT_S)
        self._name = f"job{next(_jobs)}"
        self.board = JobBoard(self._client, "test", self._name)
        self._leases: dict[str, Lease] = {}
        self._loops: list[tuple[RunningLoop, EtcdClient]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for running, client in self._loops:
            running.stop()
            client.close()
        self._client.close()

    def start(
        self, planner: Planner | None = None, *, interval_s: float | None = None
    ) -> RunningLoop:
        """Start a controller's loop with a client of its own."""
        client = EtcdClient([self.endpoint], timeout_s=1.0, patience_s=2.0)
        board = JobBoard(client, "test", self._name)
        loop = JobLoop(
            self.job,
            board,
            self.cluster,
            planner or ReactivePlanner(),
            report=self.events.append,
            interval_s=interval_s,
        )
        running = RunningLoop(loop)
        self._loops.append((running, client))
        return running

    # What agents do.

    def ready(self, *names: str) -> None:
        """Agents that are ready and hold nothing."""
        if self.board.profile() is None:
            self.board.put_profile(make_profile(6))
        for name in names:
            self.cluster.run(name)
            self.say(name)

    def starting(self, name: str) -> None:
        """An agent that loads the user's code."""
        self.cluster.run(name)
        self.say(name, ready=False)

    def say(
        self, name: str, *, holding: Holding | None = None, idle: int = 0, ready: bool = True
    ) -> None:
        """Write an agent's membership."""
        if name not in self._leases:
            self._leases[name] = self._client.lease(60)
        worker = WorkerInfo(
            id=f"{name}/0", ready=ready, holding=holding, saved=holding, idle_revision=idle
        )
        membership = Membership(
            incarnation=name,
            pod=name,
            node=f"node-of-{name}",
            node_uid=f"node-of-{name}",
            address="127.0.0.1",
            state=AgentState.STANDBY if ready else AgentState.STARTING,
            workers=(worker,),
        )
        self.board.put_agent(membership, self._leases[name])

    def form(self, step: int = 0) -> Plan:
        """The workers of the current plan train."""
        plan = self.plan
        for worker, cell in plan.cells():
            assert plan.layout is not None
            layers = plan.layout.layers(cell.stage)
            holding = Holding(
                revision=plan.revision, first=layers.start, last=layers.stop, step=step
            )
            self.say(worker.removesuffix("/0"), holding=holding)
        self.board.put_progress(Progress(revision=plan.revision, step=step, samples=step))
        return plan

    def lose(self, name: str) -> None:
        """Its pod is gone, and its lease with it."""
        self.cluster.lose(name)
        self._leases.pop(name).revoke()

    # What a test awaits.

    @property
    def plan(self) -> Plan:
        entry = self.board.plan()
        assert entry is not None
        return entry.model

    def await_plan(self, revision: int) -> Plan:
        """The plan of that revision, once it is there; a later one is an error."""

        def is_there() -> bool:
            entry = self.board.plan()
            return entry is not None and entry.model.revision >= revision

        wait_until(is_there, f"revision {revision}")
        plan = self.plan
        assert plan.revision == revision
        return plan

    def start_training(self, *names: str) -> Plan:
        """Have the first revision of these formed."""
        self.ready(*names)
        self.start()
        self.await_plan(1)
        return self.form()
