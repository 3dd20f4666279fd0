"""Runs a program to its end, with an error that shows what it said."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .errors import ProgramFailed


def run(
    argv: Sequence[str | Path],
    *,
    input: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    bound_s: float = 60,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Runs a program and returns what it said, as text.

    Args:
        argv: the program and its arguments.
        input: its standard input; empty without.
        env: its whole environment; this process's without.
        cwd: its folder.
        bound_s: seconds after which it is killed.
        check: raise where it does not exit with 0.

    Raises:
        ProgramFailed: it ended with an error (only with ``check``) or did not end in time.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            input=input or "",
            env=env,
            cwd=cwd,
            timeout=bound_s,
            text=True,
            errors="replace",
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{shlex.join(words)}: not done in {bound_s:g} s") from error
    if check and done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-4000:]
        raise ProgramFailed(f"{shlex.join(words)}: exit {done.returncode}\n{said}")
    return done
