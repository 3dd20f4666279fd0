"""Processes forked from the fork server: quickly, and never longer there than the command."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import psutil
import pytest
from crew import await_true

from parcae_cli.local.agents import end_with_command, fork_context, start_lightly

pytestmark = pytest.mark.processes


def _nothing() -> None:
    pass


def test_a_child_does_not_import_the_commands_main_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "command.py"
    script.write_text("from pathlib import Path\n(Path(__file__).parent / 'imported').touch()\n")
    main = ModuleType("__main__")
    main.__file__ = str(script)
    monkeypatch.setitem(sys.modules, "__main__", main)
    process = fork_context().Process(target=_nothing)
    start_lightly(process)
    process.join()
    assert process.exitcode == 0
    assert not (tmp_path / "imported").exists()
    assert sys.modules["__main__"] is main
    process.close()


def _linger(pid_file: str) -> None:
    end_with_command(os._exit, 1)
    Path(pid_file).write_text(str(os.getpid()))
    signal.pause()


def _command(pid_file: str) -> None:
    """A command that starts a process and is killed."""
    process = multiprocessing.get_context("forkserver").Process(target=_linger, args=(pid_file,))
    start_lightly(process)
    process.join()


def test_a_child_ends_with_a_command_that_was_killed(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    here = Path(__file__)
    code = f"import {here.stem}; {here.stem}._command({str(pid_file)!r})"
    path = os.pathsep.join([str(here.parent), str(here.parent.parent / "support")])
    command = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    await_true(lambda: pid_file.exists() and pid_file.read_text() != "", "its child runs")
    child = psutil.Process(int(pid_file.read_text()))
    command.kill()
    command.wait()
    await_true(lambda: not child.is_running(), "its child has ended")
