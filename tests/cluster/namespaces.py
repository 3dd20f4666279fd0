"""Network namespaces, each held open by a process of its own.

No file is mounted for them, so nothing of a cluster shows in the machine's mount table: when the
holder dies, the namespace and all interfaces in it go away.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

from .errors import ClusterError
from .processes import Process
from .programs import run
from .waiting import until

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Network:
    """A network namespace.

    Args:
        holder: the process that holds it open.
    """

    holder: Process

    @classmethod
    def at(cls, folder: Path, name: str) -> Network:
        """Names a namespace whose holder's pid file is in a folder; it may or may not exist."""
        return cls(Process(folder / f"{name}.pid", folder / f"{name}.log"))

    @property
    def path(self) -> Path:
        """The namespace as a file.

        Raises:
            ClusterError: it does not exist.
        """
        if (pid := self.holder.pid) is None:
            raise ClusterError(f"the network namespace {self.holder.file.stem} is gone")
        return Path(f"/proc/{pid}/ns/net")

    def make(self) -> None:
        """Makes the namespace, with its loopback up."""
        here = os.readlink("/proc/self/ns/net")
        pid = self.holder.start(["unshare", "--net", "sleep", "infinity"])
        until(
            "a new network namespace",
            lambda: os.readlink(f"/proc/{pid}/ns/net") != here,
            bound_s=10,
            log=self.holder.log,
            every_s=0.002,
        )
        self.ip("link set lo up")

    def close(self) -> None:
        """Removes it, once no other process is in it."""
        self.holder.kill()

    def argv(self, argv: Sequence[str | Path]) -> list[str]:
        """Returns the command that runs ``argv`` in the namespace.

        (``ip netns exec`` would mount /sys anew and so hide the cgroups.)
        """
        return ["nsenter", f"--net={self.path}", "--", *map(str, argv)]

    def run(
        self, argv: Sequence[str | Path], *, bound_s: float = 60, check: bool = True
    ) -> CompletedProcess[str]:
        """Runs a program to its end in the namespace; see ``programs.run``."""
        return run(self.argv(argv), bound_s=bound_s, check=check)

    def ip(self, *commands: str, check: bool = True) -> None:
        """Runs commands of ``ip`` in one go, as in ``ip("link set lo up")``."""
        script = "".join(f"{command}\n" for command in commands)
        run(self.argv(["ip", "-batch", "-"]), input=script, check=check)

    def socket(self) -> socket.socket:
        """Returns a TCP socket that belongs to the namespace.

        A socket stays in the namespace it was made in, so this thread enters only for that moment.
        """
        with _entered(self.path):
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


@contextmanager
def _entered(there: Path) -> Iterator[None]:
    """Moves this thread into another network namespace and back."""
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        target = os.open(there, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(target)
        finally:
            os.close(target)
        try:
            yield
        finally:
            _enter(back)
    finally:
        os.close(back)


def _enter(descriptor: int) -> None:
    if _libc.setns(descriptor, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, f"setns: {os.strerror(number)}")
