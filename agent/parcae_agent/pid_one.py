"""What an agent must do as a container's first process, and what it can't do when a shell is.

The kernel drops signals that a PID namespace's first process neither handles nor blocks, and makes
it the parent of every orphan. A shell that stays in front keeps SIGTERM to itself: nothing that
runs below can hear it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from pathlib import Path

_log = logging.getLogger(__name__)
_SHELLS = frozenset({"sh", "dash", "bash", "ash", "busybox", "zsh"})


def hold_sigterm() -> None:
    """Let SIGTERM wait for its handler: call it before anything slow, as importing is."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def release_sigterm() -> None:
    """Deliver what waited. Processes started from here on would inherit the block otherwise."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def reap_orphans(worker_pid: int) -> int:
    """As the first process: wait for ended processes that nobody else will wait for.

    Returns:
        How many. The worker is left to whoever waits for it.
    """
    if os.getpid() != 1:
        return 0
    reaped = 0
    with contextlib.suppress(ChildProcessError):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == worker_pid:
                break
            os.waitpid(found.si_pid, 0)
            reaped += 1
    return reaped


def warn_of_a_shell_in_front(comm: Path = Path("/proc/1/comm")) -> None:
    """Say so where SIGTERM will not come through, so that nobody has to find it out by a loss."""
    if os.getpid() == 1:
        return
    try:
        first = comm.read_text().strip()
    except OSError:
        return
    if os.getppid() == 1 and first in _SHELLS:
        _log.warning(
            "the container's first process is %s: SIGTERM ends there, and this agent will not hear "
            "of its pod's deletion. Start it in exec form, or with `exec parcae-agent`",
            first,
        )
