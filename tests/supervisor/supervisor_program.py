"""Agents with real workers in processes of their own: as pods run them, and as local runs do.

``python -m parcae_agent`` starts its worker anew, which takes the seconds that imports take; a
forked agent forks its worker too.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
from supervisor_desk import is_alive, make_config, wait_until

from parcae_agent.agent import run_agent
from parcae_agent.launch import fork_worker
from parcae_agent.settings import AgentConfig
from parcae_api.board import JobBoard
from parcae_api.membership import Membership, WorkerInfo
from parcae_api.plan import Configuration, Layout, Plan, PlanReason

START_S = 60.0
"""Importing torch takes some seconds, more when others do so too."""

_Started = tuple[int, Callable[[], int | None], Callable[[], int | None]]
"""Process id; how to wait for its exit code, within a limit; its exit code so far."""


def _run_forked(config: AgentConfig, log: str) -> None:
    os.setsid()
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os._exit(run_agent(config, fork_worker))


class AgentProgram:
    """One agent."""

    def __init__(
        self, endpoint: str, board: JobBoard, folder: Path, *, forked: bool = False, **options: Any
    ) -> None:
        options.setdefault("search_path", str(Path(models.__file__).parent))
        options.setdefault("checkpoints", folder / "checkpoints")
        self._environ = {"PARCAE_METRICS_PORT": "0", **options.pop("environ", {})}
        self.board = board
        config = make_config(endpoint, folder, **options)
        self.log = folder / f"agent{len(list(folder.glob('agent*.log')))}.log"
        self.log.touch()
        self.started_s = time.monotonic()
        start = self._fork if forked else self._spawn
        self.pid, self._wait, self._poll = start(config)
        """``pid`` is the supervisor's."""

    def _spawn(self, config: AgentConfig) -> _Started:
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "parcae_agent"],
                env={**os.environ, **self._environ, "PARCAE_AGENT": config.to_json().decode()},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

        def wait() -> int | None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(START_S)
            return process.returncode

        return process.pid, wait, process.poll

    def _fork(self, config: AgentConfig) -> _Started:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["parcae_agent.preload"])
        process = context.Process(target=_run_forked, args=(config, str(self.log)))
        process.start()
        assert process.pid is not None

        def wait() -> int | None:
            process.join(START_S)
            return process.exitcode

        return process.pid, wait, lambda: process.exitcode

    @property
    def worker_pid(self) -> int:
        pid = self.info.pid
        assert pid is not None
        return pid

    @property
    def membership(self) -> Membership | None:
        return next((m for m in self.board.agents().values() if m.pid == self.pid), None)

    @property
    def info(self) -> WorkerInfo:
        membership = self.membership
        assert membership is not None, self
        return membership.workers[0]

    @property
    def worker_id(self) -> str:
        return self.info.id

    def await_member(self) -> Membership:
        wait_until(lambda: self.membership is not None, f"it is on the board; {self}", START_S)
        membership = self.membership
        assert membership is not None
        return membership

    def await_info(self, condition: Callable[[WorkerInfo], bool], what: str) -> None:
        def holds() -> bool:
            membership = self.membership
            return membership is not None and condition(membership.workers[0])

        wait_until(holds, f"{what}; {self}", START_S)

    def await_ready(self) -> None:
        self.await_info(lambda info: info.ready, "its worker is ready")

    def await_training(self, revision: int) -> None:
        self.await_info(lambda info: info.revision == revision, f"it trains in {revision}")

    def await_gone(self) -> None:
        wait_until(lambda: self.membership is None, f"it has left the board; {self}")

    def await_end(self) -> int:
        """Its exit code."""
        code = self._wait()
        assert code is not None, f"it goes on; {self}"
        return code

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def train_alone(self, revision: int, *, layers: int = 6, micro_batches: int = 8) -> None:
        """Publish a plan in which this worker is the whole grid."""
        layout = Layout(
            configuration=Configuration(data=1, pipeline=1),
            boundaries=(0, layers),
            micro_batches=(micro_batches,),
        )
        plan = Plan(
            revision=revision,
            reason=PlanReason.JOIN,
            why="a test",
            created_unix_s=0.0,
            layout=layout,
            grid=((self.worker_id,),),
        )
        assert self.board.publish_plan(plan, self.board.plan()) is not None

    def await_step(self, step: int) -> None:
        def reached() -> bool:
            progress = self.board.progress()
            return progress is not None and progress.step >= step

        wait_until(reached, f"step {step}; {self}", START_S)

    def close(self) -> None:
        membership = self.membership if self._poll() is None else None
        if self._poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self._wait()
        for worker in membership.workers if membership else ():
            pid = worker.pid
            if pid is not None:
                wait_until(lambda pid=pid: not is_alive(pid), "its worker has ended")

    def __str__(self) -> str:
        return f"exit code {self._poll()}, log:\n{self.log.read_text()[-3000:]}"


MakeProgram = Callable[..., AgentProgram]
"""Options as for ``AgentConfig``."""
