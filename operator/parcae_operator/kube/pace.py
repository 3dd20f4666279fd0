"""How long to leave a server alone that does not answer, or refuses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_S = 0.5
LONGEST_S = 30.0


class Pace:
    """Doubles the wait with every failure in a row, with jitter; a success ends it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wait_s = 0.0
        self._free_s = 0.0

    def may_go(self) -> bool:
        """Whether the wait is over."""
        return self._clock() >= self._free_s

    @property
    def left_s(self) -> float:
        """Seconds until it is."""
        return max(0.0, self._free_s - self._clock())

    @property
    def overdue_s(self) -> float:
        """Seconds since it was over."""
        return max(0.0, self._clock() - self._free_s)

    def failed(self, retry_after_s: float | None = None) -> None:
        """Wait, and longer than last time; at least as long as the server asks for."""
        self._wait_s = min(LONGEST_S, 2 * self._wait_s or FIRST_S)
        jittered_s = self._wait_s * random.uniform(0.8, 1.2)
        self._free_s = self._clock() + max(jittered_s, min(retry_after_s or 0.0, LONGEST_S))

    def succeeded(self) -> None:
        """The next failure starts from the beginning."""
        self._wait_s = self._free_s = 0.0
