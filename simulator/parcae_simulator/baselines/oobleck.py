"""Oobleck (SOSP 2023): pipelines of several depths from templates, no idle workers.

Source of the rules: its artifact (``planning/instantiator.py``, ``execution/engine.py``,
``elastic/training_util.py``) and simulator. At least f+1 pipelines hold the state, f = 1 here;
after a loss a pipeline goes on one template shorter and copies what it lacks from a replica. The
number of pipelines is not optimised again. Its engine has no path for joiners: they wait for the
next loss (``oobleck``); ``oobleck-joins`` takes them in at once, an upper bound. Notices are not
used. Saves for total losses run in the background and cost nothing: this favours it.
"""

from __future__ import annotations

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.baselines.common import Baseline, Event, Reaction, Saving, Setting
from parcae_simulator.profiles import Kind

FAULTS = 1
"""f: losses that never cost all copies of a stage."""


class Oobleck(Baseline):
    """See the module."""

    name = "oobleck"
    takes_joiners = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._saving = Saving(setting)
        self._used = 0
        """Workers in pipelines; the rest waits."""

    def react(self, event: Event) -> Reaction:
        """Shrink pipelines after a hit; take in joiners if that is possible."""
        least = self.setting.profile.stages.min
        hits = event.hits(self._used)
        if self.grid == NOTHING:
            return self._start(event)
        if not hits:
            if not (self.takes_joiners and event.added):
                return Reaction()
            self._form(event.now, self._best_data(event.now))
            return Reaction(self._pause_s())
        total_loss = self.grid.data == 1 or self._some_stage_is_gone(hits)
        lost = self.setting.profile.global_batch_samples / 2
        if total_loss:
            lost = self._saving.since(self.grid)
        if event.now < least:
            self.grid, self._used = NOTHING, 0
            return Reaction(0.0, lost)
        if total_loss:
            self._form(event.now, self._best_data(event.now))
            pause_s = self.setting.restart_s(self.grid, Kind.ADD)
            return Reaction(pause_s + self.setting.load_s(self.grid.pipeline), lost)
        data = self.grid.data
        if self.takes_joiners and event.added:
            data = self._best_data(event.now)
        if event.now // data < least:
            data = event.now // least
        self._form(event.now, data)
        return Reaction(self._pause_s(), lost)

    def speed(self) -> float:
        """Of a set of pipelines without idle workers."""
        return self._speed(self.grid.data, self._used) if self._used else 0.0

    def trained(self, seconds: float, samples: float) -> None:
        """See ``Baseline``."""
        self._saving.trained(self.grid, seconds, samples)

    def _start(self, event: Event) -> Reaction:
        if event.now < self.setting.profile.stages.min:
            return Reaction()
        self._form(event.now, self._best_data(event.now))
        pause_s = self.setting.restart_s(self.grid, Kind.ADD)
        return Reaction(pause_s + self.setting.load_s(self.grid.pipeline, first=event.is_first))

    def _form(self, used: int, data: int) -> None:
        depth = min(used // data, self.setting.profile.stages.max)
        self.grid, self._used = Grid(data, depth), used

    def _pause_s(self) -> float:
        restart_s = self.setting.restart_s(self.grid, Kind.REMOVE)
        return restart_s + self.setting.copy_s(self.grid.pipeline)

    def _best_data(self, count: int) -> int:
        most = count // self.setting.profile.stages.min
        widths = range(min(FAULTS + 1, most), most + 1)
        return max(widths, key=lambda data: self._speed(data, count))

    def _speed(self, data: int, used: int) -> float:
        """Between the two depths that ``used`` workers mix, at least that of a shallower set."""
        depth, rest = divmod(used, data)
        measured = self.setting.profile.samples_per_second
        shallower = [Grid(data, p) for p in range(1, depth + 1) if Grid(data, p) in measured]
        best = max(map(self.setting.speed, shallower), default=None)
        if best is None:
            return self.setting.speed(Grid(data, depth))
        low, high = Grid(data, depth), Grid(data, depth + 1)
        if low in measured and high in measured:
            slow, fast = self.setting.speed(low), self.setting.speed(high)
            best = max(best, slow + (fast - slow) * rest / data)
        return best

    def _some_stage_is_gone(self, hits: frozenset[int]) -> bool:
        data, stages = self.grid
        return any(all(r * stages + stage in hits for r in range(data)) for stage in range(stages))


class OobleckJoins(Oobleck):
    """As if it took in joiners at once and re-chose the number of pipelines: an upper bound."""

    name = "oobleck-joins"
    takes_joiners = True
