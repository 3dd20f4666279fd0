"""Waits on conditions: bounded, and with an error that says what was waited for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .errors import ClusterError, WaitedInVain, tail

T = TypeVar("T")


def until(
    what: str,
    probe: Callable[[], T],
    *,
    bound_s: float,
    log: Path | None = None,
    alive: Callable[[], bool] | None = None,
    every_s: float = 0.1,
) -> T:
    """Calls ``probe`` until it answers something true, and returns that.

    An ``OSError`` or ``ClusterError`` out of the probe means "not yet": a server that is coming up
    refuses connections.

    Args:
        what: what is waited for, as in "node a to be Ready".
        probe: is called at once, after ``every_s`` seconds, and then less and less often.
        bound_s: seconds after which the wait is given up.
        log: its last lines are put into the error.
        alive: the wait is given up at once when this says no (the process that should bring the
            condition about is dead).
        every_s: seconds before the second call. The pauses grow to five times that.

    Raises:
        WaitedInVain: with what was waited for, the last answer, and the tail of the log.
    """
    end_s = time.monotonic() + bound_s
    pause_s = every_s
    while True:
        last: object
        try:
            if found := probe():
                return found
            last = found
        except (OSError, ClusterError) as error:
            last = error
        if alive is not None and not alive():
            raise WaitedInVain(f"{what}: its process is dead (last: {last!r}){tail(log)}")
        if time.monotonic() >= end_s:
            raise WaitedInVain(f"{what}: not within {bound_s:g} s (last: {last!r}){tail(log)}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.2, every_s * 5)
