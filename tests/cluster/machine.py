"""A node's machine: namespaces around containerd and a kubelet, without any word of Kubernetes'.

Used for nodes and, with no kubelet, to import images into a store.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from subprocess import CompletedProcess

from . import images, node_config
from .debs import Unpacked
from .namespaces import Network
from .places import HERE
from .processes import Process, child_of
from .programs import run
from .waiting import until

NAMESPACES = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts", "--ipc"]


@dataclass(frozen=True)
class Machine:
    """A set of namespaces whose first process is ``node_init``.

    Args:
        folder: what the machine keeps, its pid file and its logs.
        name: its host name.
        packages: where containerd and the like are.
    """

    folder: Path
    name: str
    packages: Unpacked

    @property
    def process(self) -> Process:
        """The parent of the machine's first process; it ends when the machine has ended."""
        return Process(self.folder / "machine.pid", self.folder / "machine.log")

    @property
    def network(self) -> Network:
        """The machine's network namespace, which is made before the machine."""
        return Network.at(self.folder, "network")

    def alive(self) -> bool:
        """Says whether the machine runs."""
        return self.process.alive()

    def start(self, kubelet: Sequence[str] = ()) -> None:
        """Starts containerd and, if it has a command, the kubelet. The network must be there."""
        text = node_config.containerd(images.PAUSE, self.packages.cni, self.packages.runc)
        (self.folder / "containerd.toml").write_text(text)
        init: list[str | Path] = [
            sys.executable,
            "-I",
            "-S",
            HERE / "node_init.py",
            self.folder,
            self.name,
        ]
        init += [self.packages.bin / "containerd", self._path(), *kubelet]
        self.process.start(self.network.argv(["unshare", *NAMESPACES, *init]))

    def inside(
        self, argv: Sequence[str | Path], *, bound_s: float = 60, check: bool = True
    ) -> CompletedProcess[str]:
        """Runs a program in all of the machine's namespaces. Give absolute paths.

        Raises:
            ProgramFailed: it ended with an error, or the machine is dead.
        """
        target = self._first_process() or 0
        enter = ["nsenter", f"--target={target}", "--net", "--mount", "--pid", "--uts", "--ipc"]
        environment = ["env", f"PATH={self._path()}"]
        return run([*enter, "--", *environment, *argv], bound_s=bound_s, check=check)

    def import_image(self, archive: Path, bound_s: float = 900) -> None:
        """Imports an image archive into the machine's containerd (about 20 s for each GB)."""
        until(
            f"containerd of {self.name}",
            lambda: self.inside(["ctr", "version"], check=False).returncode == 0,
            bound_s=30,
            log=self.folder / "containerd.log",
            alive=self.alive,
        )
        self.inside(["ctr", "-n", "k8s.io", "images", "import", archive], bound_s=bound_s)

    def stop_program(self, name: str, number: int = SIGTERM) -> None:
        """Ends ``containerd`` or ``kubelet`` for good; returns when it has ended.

        (One that ends by itself is started again.)
        """
        wait = (
            "touch /run/stopping; pid=$(cat /run/$0.pid); kill -$1 $pid;"
            " while kill -0 $pid 2>/dev/null; do sleep 0.05; done"
        )
        self.inside(["sh", "-c", wait, name, str(int(number))])

    def power_off(self) -> None:
        """Kills everything in the machine at once. Its network namespace stays."""
        power_off(self.process)

    def _first_process(self) -> int | None:
        pid = self.process.pid
        return None if pid is None else child_of(pid)

    def _path(self) -> str:
        usr = self.packages.root / "usr"
        machine = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return f"{usr / 'bin'}:{usr / 'sbin'}:{machine}"


def power_off(process: Process) -> None:
    """Kills a machine by the parent of its first process; returns when nothing of it is left.

    The parent ends only after the kernel has killed, and the first process taken in, all others.
    """
    pid = process.pid
    if pid is not None and (first := child_of(pid)) is not None:
        with suppress(ProcessLookupError):
            os.kill(first, SIGKILL)
        until(
            f"{process.file.parent.name} to be dead",
            lambda: not process.alive(),
            bound_s=30,
            log=process.log,
            every_s=0.01,
        )
    process.kill()
