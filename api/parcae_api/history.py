"""History: how many instances there were, interval by interval; survives an operator restart."""

from __future__ import annotations

import itertools
from typing import Annotated, Self

from pydantic import Field, model_validator

from parcae_api.model import Contract

MOST_INTERVALS = 10_000
"""The longest history that is taken."""
MOST_INSTANCES = 99_999
"""As in a recording."""
Count = Annotated[int, Field(ge=0, le=MOST_INSTANCES)]


class IntervalCounts(Contract):
    """One planning interval."""

    start_unix_s: Annotated[float, Field(allow_inf_nan=False)]
    available: Count
    """Instances at its end."""
    added: Count
    removed: Count


class History(Contract):
    """``history``: the newest intervals, oldest first."""

    interval_s: Annotated[float, Field(ge=1e-3, le=1e6)]
    intervals: Annotated[tuple[IntervalCounts, ...], Field(max_length=MOST_INTERVALS)] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        for i, (before, after) in enumerate(itertools.pairwise(self.intervals), start=1):
            if before.available + after.added - after.removed != after.available:
                raise ValueError(
                    f"intervals[{i}] has {after.available} available, but {before.available} "
                    f"before it with {after.added} added and {after.removed} removed make "
                    f"{before.available + after.added - after.removed}; correct one of them"
                )
        return self

    def with_interval(self, newest: IntervalCounts, keep: int) -> History:
        """This history with one more interval, and only the newest ``keep``."""
        intervals = (*self.intervals, newest)[-keep:]
        return self.model_copy(update={"intervals": intervals})
