"""Processes that outlive whoever starts them, found again and ended by what their file says.

A cluster's processes must end also when the test run that started them was killed. Each writes its
pid, its start time and the machine's boot id into a file *before* it becomes the program, so there
is no moment in which it runs and no file knows it; and a number that was reused since is not taken
for it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError
from .waiting import until

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

# $1 is the pid file. The rename makes the file appear whole or not at all.
_INTRODUCE = (
    'file=$1; shift; cat /proc/sys/kernel/random/boot_id /proc/$$/stat > "$file.new" &&'
    ' mv "$file.new" "$file" && exec "$@"'
)


def started_ticks(pid: int) -> int | None:
    """Returns when a process started, in clock ticks since boot; None if it is dead (or defunct).

    A dead child of this process is reaped on the way.
    """
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _ticks(stat)


def _ticks(stat: str) -> int | None:
    """None once all of it is dead: its first thread may be, and others still hold its ports."""
    fields = stat[stat.rindex(")") + 2 :].split()
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    return None if state in "ZX" and threads <= 1 else started


@dataclass(frozen=True)
class Process:
    """A process known by a file. It may or may not run.

    Args:
        file: the pid file.
        log: where its standard output and error go (appended).
    """

    file: Path
    log: Path

    @property
    def pid(self) -> int | None:
        """Its pid, or None if it does not run."""
        try:
            boot, stat = self.file.read_text().split("\n", 1)
        except FileNotFoundError:
            return None
        pid = int(stat.split(" ", 1)[0])
        if boot != BOOT_ID.read_text().strip() or started_ticks(pid) != _ticks(stat):
            return None
        return pid

    def alive(self) -> bool:
        """Says whether it runs."""
        return self.pid is not None

    def start(
        self, argv: Sequence[str | Path], env: Mapping[str, str] | None = None, bound_s: float = 10
    ) -> int:
        """Starts a program in a session of its own, and returns its pid.

        Raises:
            ClusterError: it runs already.
        """
        if self.alive():
            raise ClusterError(f"{self.file.stem} runs already, as {self.pid}")
        self.file.unlink(missing_ok=True)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        words = ["/bin/sh", "-c", _INTRODUCE, "sh", str(self.file), *map(str, argv)]
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            words[0],
            words,
            dict(os.environ if env is None else env),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self.log), append, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        until(
            f"{self.file.stem} to say its pid",
            self.file.exists,
            bound_s=bound_s,
            log=self.log,
            alive=lambda: self.file.exists() or started_ticks(pid) is not None,
            every_s=0.002,
        )
        return pid

    def kill(self, bound_s: float = 20) -> None:
        """Kills it with SIGKILL and returns when it is dead; does nothing where it is."""
        self.end(signal.SIGKILL, bound_s)

    def stop(self, grace_s: float = 1.0) -> None:
        """Asks it to end with SIGTERM, and kills it after ``grace_s`` seconds."""
        try:
            self.end(signal.SIGTERM, grace_s)
        except ClusterError:
            self.kill()

    def end(self, number: signal.Signals, bound_s: float) -> None:
        """Sends a signal and waits until it is dead.

        Raises:
            WaitedInVain: it lives on after ``bound_s`` seconds.
        """
        if (pid := self.pid) is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        until(
            f"{self.file.stem} (pid {pid}) to end after {number.name}",
            lambda: not self.alive(),
            bound_s=bound_s,
            log=self.log,
            every_s=0.01,
        )


def child_of(pid: int) -> int | None:
    """Returns the pid of a process's first child, or None if it has none."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(children[0]) if children else None
