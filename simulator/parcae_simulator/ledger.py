"""The carried cost: what a pause that outlasts its interval leaves to the next ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from parcae_optimizer.rules import Grid
from parcae_simulator.outcome import Interval


@dataclass
class Ledger:
    """Debt of pauses and the samples trained beside it."""

    interval_s: float
    owed_s: float = 0.0
    """Seconds of pause not yet served."""
    trained: float = 0.0
    """Samples so far."""
    intervals: list[Interval] = field(default_factory=list)

    def charge(self, cost_s: float, overlap_s: float) -> None:
        """Owe a change. One that starts during another pays the overlap, too.

        The old debt is replaced, not added to: the new change makes the old one void.
        """
        if cost_s > 0:
            self.owed_s = cost_s if self.owed_s == 0 else cost_s + overlap_s

    def forgive(self) -> None:
        """Owe nothing: whoever does not train has nothing to finish."""
        self.owed_s = 0.0

    def earn(
        self,
        instances: int,
        grid: Grid,
        speed: float,
        lost: float = 0.0,
        degraded: tuple[float, float] = (0.0, 0.0),
    ) -> Interval:
        """Train through one interval, after its pause.

        Args:
            instances: There in this interval.
            grid: The layout.
            speed: Samples per second.
            lost: Samples undone; the total never falls below 0.
            degraded: For so many seconds after the pause the speed is another one.

        Returns:
            The interval, as recorded.
        """
        paused_s = min(self.owed_s, self.interval_s)
        active_s = self.interval_s - paused_s
        slow_s = min(degraded[0], active_s)
        gained = speed * (active_s - slow_s) + degraded[1] * slow_s
        lost = min(lost, self.trained + gained)
        self.owed_s -= paused_s
        self.trained += gained - lost
        self.intervals.append(Interval(instances, grid, paused_s, gained - lost, lost))
        return self.intervals[-1]
