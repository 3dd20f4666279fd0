"""History: how many instances there were, interval by interval; survives an operator restart."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from parcae_api.model import Contract


class IntervalCounts(Contract):
    """One planning interval."""

    start_unix_s: float
    available: Annotated[int, Field(ge=0)]
    """Instances at its end."""
    added: Annotated[int, Field(ge=0)]
    removed: Annotated[int, Field(ge=0)]


class History(Contract):
    """``history``: the newest intervals, oldest first."""

    interval_s: Annotated[float, Field(gt=0)]
    intervals: tuple[IntervalCounts, ...] = ()

    def with_interval(self, newest: IntervalCounts, keep: int) -> History:
        """This history with one more interval, and only the newest ``keep``."""
        intervals = (*self.intervals, newest)[-keep:]
        return self.model_copy(update={"intervals": intervals})
