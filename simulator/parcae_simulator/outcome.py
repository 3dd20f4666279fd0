"""What a replay reports: one record per interval, and their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parcae_optimizer.rules import Floats, Grid


@dataclass(frozen=True, slots=True)
class Interval:
    """One interval of one replay."""

    instances: int
    grid: Grid
    """The layout in it; NOTHING while stopped."""
    paused_s: float
    """Seconds without training."""
    samples: float
    """Trained in it, less what was lost; may be negative."""
    lost_samples: float = 0.0
    """Trained before and undone."""


@dataclass(frozen=True)
class Outcome:
    """A policy on a scenario; where victims were drawn, the mean of the draws."""

    policy: str
    timing: str
    """``seen``: decides when the event is seen; ``before``: an interval earlier."""
    notices: str
    """``noticed`` or ``sudden``; empty where the policy makes no difference."""
    store: str
    """``serial`` or ``parallel``; empty where the policy makes no difference."""
    instances: tuple[int, ...]
    """Paid for, in each interval."""
    layouts: tuple[Grid, ...]
    """In each interval; of the first draw."""
    samples_by_interval: Floats
    paused_by_interval_s: Floats
    lost_samples: float
    draws: int = 1
    samples_deviation: float = 0.0
    """Standard deviation of the total over the draws."""
    on_demand: bool = False
    """Pays the on-demand price."""
    note: str = ""

    @property
    def samples(self) -> float:
        """Trained in all."""
        return max(0.0, float(self.samples_by_interval.sum()))

    @property
    def paused_s(self) -> float:
        """Without training in all."""
        return float(self.paused_by_interval_s.sum())

    @property
    def label(self) -> str:
        """Policy with its variants, as a table names it."""
        return " ".join(word for word in (self.policy, self.notices, self.store) if word)

    def instance_hours(self, interval_s: float) -> float:
        """Paid for."""
        return sum(self.instances) * interval_s / 3600


def outcome_of(
    replays: Sequence[Sequence[Interval]],
    policy: str,
    timing: str,
    *,
    notices: str = "",
    store: str = "",
    on_demand: bool = False,
    note: str = "",
) -> Outcome:
    """Sum up replays of the same scenario that differ by their draws only."""
    by_draw = np.array([[step.samples for step in replay] for replay in replays])
    paused = np.array([[step.paused_s for step in replay] for replay in replays])
    totals = np.maximum(by_draw.sum(axis=1), 0.0)
    count = len(replays)
    return Outcome(
        policy=policy,
        timing=timing,
        notices=notices,
        store=store,
        instances=tuple(step.instances for step in replays[0]),
        layouts=tuple(step.grid for step in replays[0]),
        samples_by_interval=by_draw.mean(axis=0),
        paused_by_interval_s=paused.mean(axis=0),
        lost_samples=sum(step.lost_samples for replay in replays for step in replay) / count,
        draws=count,
        samples_deviation=float(totals.std()),
        on_demand=on_demand,
        note=note,
    )
