"""Agent processes of a local run, forked from one process that has loaded torch already.

A join then takes the time that the recording says, not the seconds that imports take. The fork
server has no thread and touches no device, so forking it is safe.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType

from parcae_agent.agent import run_agent
from parcae_agent.launch import WorkerProcess, fork_worker
from parcae_agent.settings import AgentConfig, WorkerConfig
from parcae_api.log_lines import log_format_of, log_to_stderr

_main_module = threading.Lock()

PRELOAD = ["parcae_agent.preload", "parcae_agent.agent", "parcae_agent.launch"]


def fork_context() -> multiprocessing.context.ForkServerContext:
    """The fork server's context, told what to load. One per process."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context


def start_lightly(process: BaseProcess) -> None:
    """Start a process of the fork server without the command's own main module.

    multiprocessing has every child import it again, for what was defined there. Nothing of ours
    was, and its imports would cost each agent half a second.
    """
    with _main_module:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            process.start()
        finally:
            sys.modules["__main__"] = main


class ForkedAgent:
    """A running agent; see ``AgentProcess``."""

    def __init__(self, process: BaseProcess) -> None:
        self._process = process
        assert process.pid is not None
        self.pid = process.pid

    def on_exit(self, callback: Callable[[int], None]) -> None:
        """Call back once, from another thread, with the exit code."""

        def wait() -> None:
            self._process.join()
            code = self._process.exitcode
            callback(code if code is not None else -1)

        threading.Thread(target=wait, name=f"parcae-wait-{self.pid}", daemon=True).start()


class AgentLauncher:
    """Starts agents with what they have in common."""

    def __init__(self, common: AgentConfig, log: Path) -> None:
        """``common`` names no pod or node; ``log`` takes what agents print."""
        self._common = common
        self._log = log
        self._context = fork_context()

    def launch(self, pod: str, node: str) -> ForkedAgent:
        """Start the agent of a pod on a node."""
        config = self._common.model_copy(update={"pod": pod, "node": node, "node_uid": node})
        process = self._context.Process(
            target=_agent, args=(config, str(self._log)), name=pod, daemon=False
        )
        start_lightly(process)
        return ForkedAgent(process)


def end_with_command(end: Callable[..., object], *arguments: object) -> None:
    """Call ``end`` when the command has ended, however it ended: nothing outlives a kill -9.

    The fork server is no help: it lives as long as any process that it has forked.
    """
    command = multiprocessing.parent_process()
    assert command is not None

    def watch() -> None:
        command.join()
        end(*arguments)

    threading.Thread(target=watch, name="parcae-command", daemon=True).start()


def warm_up() -> None:
    """Start the fork server and wait until it has loaded everything."""
    process = fork_context().Process(target=_nothing, daemon=True)
    start_lightly(process)
    process.join()


def _nothing() -> None:
    """Prove that the server forks."""


def _agent(config: AgentConfig, log: str) -> None:
    """The forked process: lead a group of its own, log to the run's file, run the agent."""
    os.setpgid(0, 0)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    log_to_stderr(log_format_of(), config.pod)

    def start_worker(settings: WorkerConfig) -> WorkerProcess:
        worker = fork_worker(settings)  # while this process has no other thread
        end_with_command(os.killpg, 0, signal.SIGKILL)
        return worker

    code = run_agent(config, start_worker)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
