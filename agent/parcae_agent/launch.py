"""Starting workers: by running Python anew, or by forking from a process that has torch loaded."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from parcae_agent.link import Link
from parcae_agent.settings import WorkerConfig


@dataclass(frozen=True)
class WorkerProcess:
    """A started worker, as its supervisor holds it."""

    pid: int
    link: Link
    wait: Callable[[], int]
    """Blocks until it has ended; its exit code, negative for a signal."""

    def kill(self) -> None:
        """SIGKILL it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def spawn_worker(config: WorkerConfig) -> WorkerProcess:
    """Start a worker as a new Python program: what a pod does. Returns at once."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "parcae_agent.entry",
                config.to_json().decode(),
                str(theirs.fileno()),
            ],
            pass_fds=[theirs.fileno()],
        )
    return WorkerProcess(process.pid, Link(ours), process.wait)


def fork_worker(config: WorkerConfig) -> WorkerProcess:
    """Start a worker by forking: this process must have torch loaded and no other thread."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ours.close()
            from parcae_agent.entry import run_worker

            code = run_worker(config, theirs)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    theirs.close()
    return WorkerProcess(pid, Link(ours), lambda: _wait(pid))


def _wait(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
