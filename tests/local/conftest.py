"""A folder for local runs, and proof that nothing they started is left."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import models
import psutil
import pytest
from crew import await_true
from local_site import Site, agents_of


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    shutil.copy(models.__file__, tmp_path / "models.py")
    before = set(agents_of(psutil.Process()))
    made = Site(tmp_path)
    yield made
    for process in made.started:
        _end(process)
    await_true(lambda: not set(agents_of(psutil.Process())) - before, "all agents have ended")


def _end(process: subprocess.Popen[str]) -> None:
    """In peace if it may: agents take their time to find out that nobody is there any more."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that has room for the two files of etcd's log, 64 MB each, and little more.

    With room for one, etcd fills it for a moment at its start, by trying to make the second.
    """
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode:
        pytest.skip("LEFT OUT: this machine does not let root mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
