"""What goes wrong in a test cluster, said so that a failed test needs no second look."""

from __future__ import annotations

from pathlib import Path

TAIL_LINES = 12


class ClusterError(Exception):
    """Something that the test cluster needs did not happen; the message says what."""


class WaitedInVain(ClusterError):
    """A condition did not come true within its time."""


class ProgramFailed(ClusterError):
    """A program that should have succeeded ended with an error."""


def tail(log: Path | None, lines: int = TAIL_LINES) -> str:
    """Returns the last lines of a log, under its name, for the end of an error message.

    Empty where there is no log.
    """
    if log is None or not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 64 * 1024))
        text = file.read().decode(errors="replace")
    return f"\n--- end of {log}\n" + "\n".join(text.splitlines()[-lines:])
