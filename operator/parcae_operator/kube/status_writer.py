"""When a job's status is worth a write. Pure, but for the clock.

What people wait for goes out at once; numbers that change with every step, now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from parcae_api.job_status import JobStatus

NUMBERS_S = 5.0
"""Between two writes in which only numbers changed."""
_NUMBERS = frozenset(
    {
        "step",
        "samples",
        "steps_committed",
        "samples_committed",
        "throughput_samples_per_second",
        "liveput_samples_per_second",
    }
)


class StatusWriter:
    """Remembers what was written.

    Args:
        written: As it stands on the API server.
    """

    def __init__(self, written: JobStatus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.written = written
        self._clock = clock
        self._at_s = float("-inf")

    def is_due(self, status: JobStatus) -> bool:
        """Whether this status should be written now."""
        if status == self.written:
            return False
        if self._clock() - self._at_s >= NUMBERS_S:
            return True
        return status.model_dump(exclude=set(_NUMBERS)) != self.written.model_dump(
            exclude=set(_NUMBERS)
        )

    def wrote(self, status: JobStatus) -> None:
        """It was written."""
        self.written = status
        self._at_s = self._clock()
