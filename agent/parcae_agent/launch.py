"""Starting workers: by running Python anew, or by forking from a process that has torch loaded."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable

from parcae_agent.link import Link
from parcae_agent.settings import WorkerConfig

_SEND_SECONDS = 5
"""A worker that takes no message for so long has stopped."""


class WorkerProcess:
    """A started worker, as its supervisor holds it. Thread-safe."""

    def __init__(self, pid: int, end: socket.socket, wait: Callable[[], int]) -> None:
        """``end`` is our end of its link; ``wait``, called once, blocks until it has ended."""
        self.pid = pid
        self.link = Link(end)
        self._socket = end
        self._wait = wait
        self._lock = threading.Lock()
        self._reaped = False

    def wait(self) -> int:
        """Block until it has ended; its exit code, negative for a signal."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)  # ended, and its id still its own
        with self._lock:
            self._reaped = True
            return self._wait()

    def hang_up(self) -> None:
        """Let the link end behind what it has said so far, whoever else holds its end open."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """SIGKILL it, unless it was waited for: its id may be somebody else's by now."""
        with self._lock:
            if not self._reaped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)


def spawn_worker(config: WorkerConfig) -> WorkerProcess:
    """Start a worker as a new Python program: what a pod does. Returns at once."""
    ours, theirs = _socket_pair()
    passed = [theirs.fileno()] if config.page is None else [theirs.fileno(), config.page]
    with theirs:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "parcae_agent.entry",
                config.to_json().decode(),
                str(theirs.fileno()),
            ],
            pass_fds=passed,
        )
    return WorkerProcess(process.pid, ours, process.wait)


def fork_worker(config: WorkerConfig) -> WorkerProcess:
    """Start a worker by forking: this process must have torch loaded and no other thread."""
    ours, theirs = _socket_pair()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            die_with_parent(parent)
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
    return WorkerProcess(pid, ours, lambda: _wait(pid))


def _wait(pid: int) -> int:
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def die_with_parent(parent: int) -> None:
    """Have Linux kill this process when the thread that forked it ends.

    Elsewhere a worker ends when it next looks at its link.
    """
    if sys.platform == "linux":
        set_parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the kernel was asked
            os.kill(os.getpid(), signal.SIGKILL)


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """The supervisor's end and the worker's. The supervisor never waits long for its worker."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_SECONDS, 0))
    return ours, theirs
