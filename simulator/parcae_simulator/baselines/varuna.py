"""Varuna (EuroSys 2022): checkpoint, morph to the fastest layout, restart.

Source of the rules: its code (``varuna/auto_config.py``, ``varuna/morph_server.py``) and manual.
It re-chooses the layout at every morph for the machines there are; a noticed removal lets it
finish the step and save before it relaunches; a sudden one rolls back to the last periodic save.
Here it may take any measured depth, where the code takes divisors of the number of cut points,
and none of its fixed sleeps (120 s) is charged: both favour it.
"""

from __future__ import annotations

from parcae_optimizer.rules import NOTHING
from parcae_simulator.baselines.common import Baseline, Event, Reaction, Saving, Setting


class Varuna(Baseline):
    """See the module."""

    name = "varuna"
    heeds_notices = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._saving = Saving(setting)

    def react(self, event: Event) -> Reaction:
        """Relaunch if a working machine was hit or the world size can change; else keep."""
        target = self.setting.profile.best(event.now) or NOTHING
        hits = event.hits(self.grid.workers)
        lost = self._saving.since(self.grid) if hits and self.sudden() else 0.0
        if target == NOTHING:
            self.grid = NOTHING
            return Reaction(0.0, lost)
        if not hits and target.workers == self.grid.workers:
            return Reaction()
        pause_s = self.setting.restart_s(target, self.kind(event))
        pause_s += self.setting.load_s(target.pipeline, first=event.is_first)
        self._saving.restart()
        self.grid = target
        return Reaction(pause_s, lost)

    def speed(self) -> float:
        """Periodic saves are needed only where removals come suddenly."""
        share = self._saving.efficiency(self.grid) if self.sudden() else 1.0
        return super().speed() * share

    def trained(self, seconds: float, samples: float) -> None:
        """See ``Baseline``."""
        self._saving.trained(self.grid, seconds, samples)
