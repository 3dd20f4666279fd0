"""Bamboo (NSDI 2023): redundant computation in pipelines of a fixed depth.

Source of the rules: its code (``project_pactum``: ``rendezvous/etcd.py``, ``redundancy.py``, the
pipeline engine and schedule) and simulator. The worker of stage s also keeps stage s+1, so the
depth is at least twice what the model needs, and the redundant forward passes cost a share of
the speed. A loss is taken over by its holder at once; two neighbours of one pipeline lost
together are fatal to it. Saves for the case that a stage is lost everywhere run in the
background and cost nothing: this favours it.
"""

from __future__ import annotations

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.baselines.common import Baseline, Event, Reaction, Saving, Setting
from parcae_simulator.profiles import Kind

REDUNDANCY = 0.2
"""Share of redundant work; 0 if all of it fits into bubbles, 0.33 if none does."""


class Bamboo(Baseline):
    """See the module."""

    name = "bamboo"
    heeds_notices = True

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._saving = Saving(setting)
        self.depth = redundant_depth(setting)

    def react(self, event: Event) -> Reaction:
        """Reconfigure after every hit, and when another pipeline fits or one no longer does."""
        hits = event.hits(self.grid.workers)
        target = Grid(event.now // self.depth, self.depth)
        if not hits and target.data == self.grid.data:
            return Reaction()
        broken, lost_stage = _shadows_hit(self.grid, hits)
        lost = self.setting.profile.global_batch_samples / 2 if hits and self.sudden() else 0.0
        if lost_stage:
            lost = self._saving.since(self.grid)
        kind = self.kind(event)
        if target.data == 0:
            self.grid = NOTHING
            return Reaction(0.0, lost)
        self.grid = target
        pause_s = self.setting.restart_s(target, kind) + 2 * self.setting.copy_s(self.depth)
        if broken and kind is Kind.REMOVE:
            pause_s += self.setting.profile.rendezvous_ms / 1000
        if lost_stage:
            pause_s += self.setting.load_s(self.depth)
        return Reaction(pause_s, lost)

    def speed(self) -> float:
        """Redundant work takes its share."""
        return super().speed() / (1 + REDUNDANCY)

    def trained(self, seconds: float, samples: float) -> None:
        """See ``Baseline``."""
        self._saving.trained(self.grid, seconds, samples)

    def note(self) -> str:
        """The depth, chosen with the counts known."""
        grid = Grid(1, self.depth)
        missing = grid not in self.setting.profile.samples_per_second
        return f"depth {self.depth}" + (", speeds of the nearest measured depth" * missing)


def redundant_depth(setting: Setting) -> int:
    """The depth that holds two copies and trains the most over the scenario."""
    stages = setting.profile.stages
    depths = [
        depth for depth in range(2 * stages.min, stages.max + 1) if depth not in stages.excluded
    ] or [2 * stages.min]

    def total(depth: int) -> float:
        widths = (count // depth for count in setting.scenario.counts)
        return sum(setting.speed(Grid(data, depth)) for data in widths if data)

    return max(depths, key=total)


def _shadows_hit(grid: Grid, hits: frozenset[int]) -> tuple[bool, bool]:
    """Whether a stage's owner and its holder went together: in a pipeline, in all of them."""
    if not hits:
        return False, False
    data, stages = grid
    broken = [
        {
            stage
            for stage in range(stages)
            if r * stages + stage in hits and r * stages + (stage - 1) % stages in hits
        }
        for r in range(data)
    ]
    return any(broken), bool(set.intersection(*broken))
