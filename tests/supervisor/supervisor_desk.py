"""A supervisor in this process, with a worker that says and does what the test tells it to."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from parcae_agent.launch import WorkerProcess
from parcae_agent.link import Link, Message, Ready, State
from parcae_agent.settings import AgentConfig, ExitCode
from parcae_agent.supervisor import Supervisor, Terminate, new_incarnation, worker_id
from parcae_api.board import JobBoard
from parcae_api.etcd import EtcdClient
from parcae_api.job import Entrypoint, Instances, JobSpec
from parcae_api.membership import Holding, Membership, WorkerInfo
from parcae_api.plan import Configuration, Layout, Plan, PlanReason
from parcae_api.profile import LayerProfile, Profile

WAIT_S = 20.0
M = TypeVar("M")

PROFILE = Profile(
    layers=(LayerProfile(name="a", param_bytes=1, state_bytes=3, activation_bytes=1),),
    num_micro_batches=4,
    micro_batch_samples=2,
    total_steps=100,
)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = WAIT_S) -> None:
    deadline_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline_s, f"never happened: {what}"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process lives; one that only waits to be reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def make_config(endpoint: str, folder: Path, **options: Any) -> AgentConfig:
    spec = JobSpec(
        instances=Instances(max=4),
        entrypoint=Entrypoint(
            function=options.pop("function", "models:gpt"), args=options.pop("args", {})
        ),
    )
    return AgentConfig(
        **{
            "endpoints": (endpoint,),
            "namespace": "test",
            "job": "job",
            "spec": spec,
            "pod": "pod",
            "node": "node",
            "node_uid": "uid",
            "address": "127.0.0.1",
            "ledger": folder / "ledger",
            **options,
        }
    )


def make_plan(
    revision: int, *workers: str, reason: PlanReason = PlanReason.JOIN, trains: bool = True
) -> Plan:
    """A plan of replicas; with ``trains`` False a pause."""
    if not trains:
        return Plan(revision=revision, reason=reason, why="a test", created_unix_s=0.0)
    layout = Layout(
        configuration=Configuration(data=len(workers), pipeline=1),
        boundaries=(0, 1),
        micro_batches=(1,) * len(workers),
    )
    grid = tuple((worker,) for worker in workers)
    return Plan(
        revision=revision,
        reason=reason,
        why="a test",
        created_unix_s=0.0,
        layout=layout,
        grid=grid,
    )


class ScriptedWorker:
    """A process that does nothing, and the worker's end of the link in the test's hands."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.exit(int(sys.stdin.readline() or 0))"],
            stdin=subprocess.PIPE,
        )
        self.link = Link(theirs)
        self.process = WorkerProcess(self._process.pid, ours, self._process.wait)
        self.heard: list[Message] = []
        self.is_held_open = False
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._read, self._watch)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, message: Any) -> None:
        assert self.link.send(message)

    def ready(self) -> None:
        self.say(Ready(profile=PROFILE))

    def state(self, revision: int | None = None, *, idle: int = 0, step: int | None = None) -> None:
        """Say where it stands; with a step: what it holds."""
        holding = None if step is None else Holding(revision=1, first=0, last=1, step=step)
        self.say(State(revision=revision, idle_revision=idle, holding=holding))

    def hears(self, kind: type[M], count: int = 1) -> M:
        """The newest message of a kind, once there are so many."""
        wait_until(lambda: len(self._of(kind)) >= count, f"{count} of {kind.__name__}")
        return self._of(kind)[-1]

    def exit(self, code: int) -> None:
        """Close the link, and end a moment later, as a worker does."""
        self.link.close()
        self.let_exit(code)

    def let_exit(self, code: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{code}\n".encode())
        self._process.stdin.close()

    def die(self) -> None:
        """SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        self.process.kill()
        self.link.close()
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _of(self, kind: type[M]) -> list[M]:
        return [message for message in self.heard if isinstance(message, kind)]

    def _watch(self) -> None:
        """Close the link with the process, as the kernel does; unless somebody holds it open."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        if not self.is_held_open:
            self.link.close()

    def _read(self) -> None:
        for message in self.link.messages():
            self.heard.append(message)


class Desk:
    """One supervisor at work."""

    def __init__(self, endpoint: str, board: JobBoard, folder: Path, **options: Any) -> None:
        self.board = board
        self.worker = ScriptedWorker()
        self.incarnation = new_incarnation("pod")
        self.id = worker_id(self.incarnation)
        self.error_file = folder / f"{self.incarnation}.error.json"
        self._client = EtcdClient([endpoint], timeout_s=0.5, patience_s=1.0)
        self.supervisor = Supervisor(
            make_config(endpoint, folder, **options),
            self.incarnation,
            self.worker.process,
            self._client,
            self.error_file,
        )
        self._code: ExitCode | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def terminate(self) -> None:
        """What SIGTERM does."""
        self.supervisor._news.put(Terminate())

    @property
    def membership(self) -> Membership | None:
        return self.board.agents().get(self.incarnation)

    @property
    def info(self) -> WorkerInfo:
        membership = self.membership
        assert membership is not None
        return membership.workers[0]

    def await_member(self) -> Membership:
        wait_until(lambda: self.membership is not None, "it is on the board")
        membership = self.membership
        assert membership is not None
        return membership

    def await_info(self, condition: Callable[[WorkerInfo], bool], what: str) -> None:
        def holds() -> bool:
            membership = self.membership
            return membership is not None and condition(membership.workers[0])

        wait_until(holds, what)

    def await_gone(self, seconds: float = WAIT_S) -> None:
        wait_until(lambda: self.membership is None, "it has left the board", seconds)

    def await_end(self) -> ExitCode:
        self._thread.join(WAIT_S)
        assert self._code is not None, "the supervisor goes on"
        return self._code

    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def publish(self, plan: Plan) -> None:
        assert self.board.publish_plan(plan, self.board.plan()) is not None

    def close(self) -> None:
        self.worker.close()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        self._client.close()

    def _run(self) -> None:
        self._code = self.supervisor.run()


MakeDesk = Callable[..., Desk]
"""Options as for ``AgentConfig``."""
