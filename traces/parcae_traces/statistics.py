"""What a trace is like, in a dozen numbers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from statistics import fmean

from parcae_traces.model import Trace
from parcae_traces.segments import HOUR_S
from parcae_traces.series import INTERVAL_S

SOON_S = 120.0
"""A removal followed by another within this time leaves no quiet to recover in."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts are instances; joins at time 0 are the stock the trace starts with, no additions."""

    duration_s: float
    capacity: int
    mean_count: float
    """Weighted by time."""
    min_count: int
    max_count: int
    num_added: int
    num_removed: int
    num_batches: int
    """Moments with a removal: what is removed at one moment is one batch."""
    mean_batch: float
    """0 without removals, like ``max_batch``."""
    max_batch: int
    num_moments: int
    """Separate times after 0 at which anything changes."""
    num_eventful_minutes: int
    mean_life_s: float
    """Seconds lived by all instances per removal, infinite without one. Thus lives that outlast
    the trace count for what they are known to have lasted (the estimate of maximum likelihood
    for a constant hazard), which the mean of the ended lives alone would leave out."""
    share_followed_soon: float
    """Batches followed by another within ``SOON_S``, of all batches; 0 without any."""

    def line(self) -> str:
        """All of it in one line for a log."""
        life = "no removals" if math.isinf(self.mean_life_s) else f"{self.mean_life_s / 60:.0f} min"
        return (
            f"{self.duration_s / HOUR_S:.2f} h, capacity {self.capacity}, count "
            f"{self.mean_count:.1f} ({self.min_count} to {self.max_count}), {self.num_added} "
            f"added, {self.num_removed} removed in batches of {self.mean_batch:.2f} (at most "
            f"{self.max_batch}), {self.num_eventful_minutes} eventful minutes, mean life {life}, "
            f"{self.share_followed_soon:.0%} of batches followed within {SOON_S / 60:.0f} min"
        )


def statistics_of(trace: Trace) -> Statistics:
    """Measure a trace."""
    later = [moment for moment in trace.moments() if moment.time_s > 0]
    batches = [len(moment.removed) for moment in later if moment.removed]
    batch_times_s = [moment.time_s for moment in later if moment.removed]
    num_removed = sum(batches)
    lived_s = math.fsum(life.seconds_until(trace.duration_s) for life in trace.lives)
    counts = [trace.count_at(0), *(count for time_s, count in trace.counts() if time_s > 0)]
    gaps_s = [next_s - time_s for time_s, next_s in itertools.pairwise(batch_times_s)]
    return Statistics(
        duration_s=trace.duration_s,
        capacity=trace.capacity,
        mean_count=lived_s / trace.duration_s,
        min_count=min(counts),
        max_count=max(counts),
        num_added=sum(len(moment.joined) for moment in later),
        num_removed=num_removed,
        num_batches=len(batches),
        mean_batch=fmean(batches) if batches else 0.0,
        max_batch=max(batches, default=0),
        num_moments=len(later),
        num_eventful_minutes=len({moment.time_s // INTERVAL_S for moment in later}),
        mean_life_s=lived_s / num_removed if num_removed else math.inf,
        share_followed_soon=(
            sum(gap_s <= SOON_S for gap_s in gaps_s) / len(batches) if batches else 0.0
        ),
    )
