"""An agent in a PID namespace of its own, as a container's first process or below one."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import models
import pytest
from supervisor_desk import is_alive, make_config, wait_until
from supervisor_program import START_S

from parcae_api.board import JobBoard
from parcae_api.membership import Membership

AGENT = f"{sys.executable} -m parcae_agent"


def can_unshare() -> bool:
    """Whether this user may make PID namespaces."""
    program = shutil.which("unshare")
    if program is None or shutil.which("nsenter") is None:
        return False
    command = [program, "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(not can_unshare(), reason="LEFT OUT: needs PID namespaces")


class NamespacedAgent:
    """``command`` is what the container runs, in exec form."""

    def __init__(
        self, endpoint: str, board: JobBoard, folder: Path, *command: str, **environ: str
    ) -> None:
        self.board = board
        self.log = folder / "container.log"
        options: dict[str, Any] = {"search_path": str(Path(models.__file__).parent)}
        config = make_config(endpoint, folder, checkpoints=folder / "checkpoints", **options)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--mount-proc", "--", *command],
                env={
                    **os.environ,
                    "PARCAE_AGENT": config.to_json().decode(),
                    "PARCAE_SPOT_NOTICES": "off",
                    **environ,
                },
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: self._first() is not None, "its first process runs", START_S)
        first = self._first()
        assert first is not None
        self.pid = first
        """Of its first process, as seen from here."""

    def _first(self) -> int | None:
        found = children(self._process.pid)
        return found[0] if found else None

    @property
    def membership(self) -> Membership | None:
        return next(iter(self.board.agents().values()), None)

    def await_member(self) -> Membership:
        wait_until(lambda: self.membership is not None, f"it is on the board; {self}", START_S)
        found = self.membership
        assert found is not None
        return found

    def await_logged(self, text: str) -> None:
        """Until it says so. One that nothing needs leaves the board right after its notice."""
        wait_until(lambda: text in self.log.read_text(), f"{text!r}; {self}", START_S)

    def await_ready(self) -> None:
        def is_ready() -> bool:
            found = self.membership
            return found is not None and found.workers[0].ready

        wait_until(is_ready, f"its worker is ready; {self}", START_S)

    def signal(self, number: signal.Signals) -> None:
        """What the kubelet does: to the first process."""
        os.kill(self.pid, number)

    def enter(self, script: str) -> None:
        """Run a shell script inside."""
        command = ["nsenter", "--target", str(self.pid), "--pid", "--", "sh", "-c", script]
        subprocess.run(command, check=True)

    def await_end(self) -> int:
        """The exit code of its first process."""
        return self._process.wait(START_S)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.wait(START_S)

    def __str__(self) -> str:
        return f"exit code {self._process.poll()}, log:\n{self.log.read_text()[-3000:]}"


def children(pid: int) -> list[int]:
    """Its children, ended ones too."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in found]


def blocks(pid: int, number: signal.Signals) -> bool:
    """Whether its main thread holds a signal back."""
    if not is_alive(pid):
        return False
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigBlk:"):
            return bool(int(line.split()[1], 16) & 1 << (number - 1))
    return False
