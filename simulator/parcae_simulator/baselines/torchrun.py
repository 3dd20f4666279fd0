"""A script under torchrun's elastic launcher: every change of members restarts all from a save.

Source of the rules: PyTorch's elastic agent (all agents meet anew on every loss and every join)
and measurements of it with tuned time-outs: about 5 s of meeting beyond starting processes. The
script fixes its depth; it saves periodically and never on a notice.
"""

from __future__ import annotations

from parcae_optimizer.rules import NOTHING
from parcae_simulator.baselines.common import (
    Baseline,
    Event,
    Reaction,
    Saving,
    Setting,
)
from parcae_simulator.profiles import Kind

MEETING_S = 5.0
"""Tuned; the defaults take about 45 s."""


class Torchrun(Baseline):
    """See the module."""

    name = "torchrun"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._saving = Saving(setting)
        self.depth = setting.fixed_depth

    def react(self, event: Event) -> Reaction:
        """Restart at every event, also one that only touches spares."""
        if not (event.added or event.removed or event.is_first):
            return Reaction()
        lost = self._saving.since(self.grid)
        self.grid = self.setting.best_width(self.depth, event.now)
        if self.grid == NOTHING:
            return Reaction(0.0, lost)
        pause_s = self.setting.restart_s(self.grid, Kind.ADD) + MEETING_S
        pause_s += self.setting.save_s(self.depth)
        return Reaction(pause_s, lost)

    def speed(self) -> float:
        """Periodic saves take their share."""
        return super().speed() * self._saving.efficiency(self.grid)

    def trained(self, seconds: float, samples: float) -> None:
        """See ``Baseline``."""
        self._saving.trained(self.grid, seconds, samples)

    def note(self) -> str:
        """The depth, chosen with the counts known."""
        return f"depth {self.depth}"
