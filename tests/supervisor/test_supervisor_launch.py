"""Starting workers, and their end with their supervisor."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from supervisor_desk import is_alive, make_config, wait_until

from parcae_agent import launch
from parcae_agent.launch import WorkerProcess, fork_worker
from parcae_agent.link import Link, Ping
from parcae_agent.settings import WorkerConfig

pytestmark = pytest.mark.processes


@pytest.fixture
def start_process() -> Iterator[Callable[[str], WorkerProcess]]:
    """Run Python as a worker would be run."""
    started: list[tuple[WorkerProcess, socket.socket]] = []

    def start(code: str) -> WorkerProcess:
        process = subprocess.Popen([sys.executable, "-c", code])
        ours, theirs = socket.socketpair()
        started.append((WorkerProcess(process.pid, ours, process.wait), theirs))
        return started[-1][0]

    yield start
    for worker, theirs in started:
        worker.link.close()
        theirs.close()


Start = Callable[[str], WorkerProcess]


def test_its_exit_code_and_its_signal_are_told_apart(start_process: Start) -> None:
    assert start_process("import sys; sys.exit(42)").wait() == 42
    worker = start_process("import time; time.sleep(1000)")
    worker.kill()
    assert worker.wait() == -signal.SIGKILL


def test_nobody_else_is_killed_once_it_has_ended(
    start_process: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start_process("")
    worker.wait()
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    worker.kill()  # its id may belong to another process by now
    assert killed == []


def test_a_worker_that_has_ended_and_was_not_waited_for_can_be_killed(
    start_process: Start,
) -> None:
    worker = start_process("")
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    worker.kill()
    assert worker.wait() == 0


def test_a_link_that_nobody_reads_does_not_hold_the_supervisor_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "_SEND_SECONDS", 1)
    ours, theirs = launch._socket_pair()
    link = Link(ours)
    while link.send(Ping()):
        pass  # ends when the socket is full and a second has gone by
    link.close()
    theirs.close()


ENDLESS = """
import time
from pathlib import Path
(Path(__file__).parent / "importing").touch()
time.sleep(1000)
"""


def _supervise(config: WorkerConfig, pids: Connection) -> None:
    """A supervisor's process: forks its worker, and says which it is."""
    worker = fork_worker(config)
    pids.send(worker.pid)
    worker.wait()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_forked_worker_ends_with_its_supervisor(tmp_path: Path, stopped: bool) -> None:
    # Its module waits for ever: it has not come to read its link.
    (tmp_path / "endless.py").write_text(ENDLESS)
    agent = make_config("http://127.0.0.1:1", tmp_path, function="endless:make")
    config = WorkerConfig(
        worker="a/0",
        spec=agent.spec,
        address="127.0.0.1",
        search_path=str(tmp_path),
        ledger=tmp_path / "ledger",
        checkpoints=None,
    )
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["parcae_agent.preload"])
    ours, theirs = context.Pipe(duplex=False)
    supervisor = context.Process(target=_supervise, args=(config, theirs))
    supervisor.start()
    pid = ours.recv()
    wait_until((tmp_path / "importing").exists, "it imports the user's code", 60.0)
    if stopped:
        os.kill(pid, signal.SIGSTOP)
    supervisor.kill()
    supervisor.join()
    ours.close()
    theirs.close()
    wait_until(lambda: not is_alive(pid), "the worker has ended")
    supervisor.close()
