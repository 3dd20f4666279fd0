"""torchft: fault tolerance of the replicated dimension; a group is one pipeline of fixed depth.

Source of the rules: its README and code (``src/lighthouse.rs``, ``torchft/manager.py``) and
measurements with tuned time-outs: survivors lose the aborted step and about 1 s. Groups form and
heal beside the others. That the survivors of a broken pipeline and spares are put together into
new groups is a launcher's work, granted here. Notices are not used; the number of samples a step
follows the number of groups, so samples are counted, not steps.
"""

from __future__ import annotations

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.baselines.common import (
    Baseline,
    Event,
    Reaction,
    Saving,
    Setting,
)
from parcae_simulator.profiles import Kind

ABORT_S = 1.0
"""Tuned: noticing a dead group; the default is 5 s."""
SAVE_EVERY_S = 600.0


class Torchft(Baseline):
    """See the module."""

    name = "torchft"

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._saving = Saving(setting)
        self.depth = setting.fixed_depth
        self._ready = 0
        """Groups that train; the others of the grid are forming."""
        self._forming_s = 0.0
        """Until they join."""

    def react(self, event: Event) -> Reaction:
        """Go on with the groups that were not hit, and form new ones beside them."""
        hits = event.hits(self.grid.workers)
        hit_groups = {cell // self.depth for cell in hits}
        alive = sum(group not in hit_groups for group in range(self._ready))
        target = self.setting.best_width(self.depth, event.now)
        if target == NOTHING:
            lost = self._saving.since(self.grid) if hits else 0.0
            self.grid, self._ready, self._forming_s = NOTHING, 0, 0.0
            return Reaction(0.0, lost)
        if not hits and target == self.grid:
            return Reaction()
        if alive == 0:
            return self._start(event, target)
        pause_s = lost = 0.0
        if hits:
            pause_s += ABORT_S + self.setting.regroup_s(Grid(alive, self.depth))
            lost = self.setting.profile.global_batch_samples / 2
        if target.data > alive:
            start_s = self.setting.restart_s(Grid(1, self.depth), Kind.ADD)
            self._forming_s = start_s + self.setting.copy_s(self.depth)
            pause_s += self.setting.regroup_s(target)
        else:
            self._forming_s = 0.0
            if not hits:
                pause_s += self.setting.regroup_s(target)
        self.grid, self._ready = target, min(alive, target.data)
        return Reaction(pause_s, lost)

    def degraded(self) -> tuple[float, float]:
        """While groups form, the ready ones train."""
        ready = Grid(self._ready, self.depth)
        return self._forming_s, self.setting.speed(ready) if self._ready else 0.0

    def trained(self, seconds: float, samples: float) -> None:
        """See ``Baseline``."""
        self._saving.trained(self.grid, seconds, samples, every_s=SAVE_EVERY_S)
        self._forming_s = max(0.0, self._forming_s - seconds)
        if self._forming_s == 0.0:
            self._ready = self.grid.data

    def note(self) -> str:
        """The depth, chosen with the counts known."""
        return f"depth {self.depth}"

    def _start(self, event: Event, target: Grid) -> Reaction:
        """From nothing, or from a save if no group is left."""
        lost = self._saving.since(self.grid)
        self.grid, self._ready, self._forming_s = target, target.data, 0.0
        pause_s = self.setting.restart_s(target, Kind.ADD)
        pause_s += self.setting.load_s(self.depth, first=event.is_first)
        return Reaction(pause_s, lost)
