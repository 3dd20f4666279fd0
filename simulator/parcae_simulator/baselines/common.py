"""What all baselines share: the draw, the debt, the store, the clock of periodic saves.

Cells of a grid are numbered r·P + s, spare instances follow; the victims are a uniformly random
subset of all. After a change the grid is refilled without holes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.ledger import Ledger
from parcae_simulator.outcome import Interval, Outcome, outcome_of
from parcae_simulator.profiles import Kind, ModelProfile
from parcae_simulator.scenario import Scenario
from parcae_simulator.times import CHECKPOINT_MS, Times

NUM_DRAWS = 20
LEAST_STEPS_BETWEEN_SAVES = 10


class Store(StrEnum):
    """Where checkpoints lie: the assumption that decides the ranking."""

    SERIAL = "serial"
    """One store that all stages go through, one after the other, and 14 s to save and load."""
    PARALLEL = "parallel"
    """Every stage over its own link at once."""


class Notices(StrEnum):
    """Whether a removal is announced early enough to save first."""

    NOTICED = "noticed"
    SUDDEN = "sudden"


@dataclass(frozen=True)
class Setting:
    """What a baseline runs on."""

    profile: ModelProfile
    scenario: Scenario
    notices: Notices = Notices.NOTICED
    store: Store = Store.SERIAL

    @cached_property
    def times(self) -> Times:
        """Elementary times of the model."""
        return Times(self.profile)

    @cached_property
    def _speeds(self) -> dict[Grid, float]:
        return {}

    def speed(self, grid: Grid) -> float:
        """Samples per second; a layout that was not measured counts as a near smaller one.

        That is the nearest shallower depth with the same D, else the same depth with the next
        smaller D, else 0.
        """
        if (known := self._speeds.get(grid)) is None:
            known = self._speeds[grid] = self._nearest_speed(grid)
        return known

    def _nearest_speed(self, grid: Grid) -> float:
        measured = self.profile.samples_per_second
        shallower = (Grid(grid.data, p) for p in range(grid.pipeline, 0, -1))
        smaller = (Grid(d, grid.pipeline) for d in range(grid.data, 0, -1))
        for candidate in (*shallower, *smaller):
            if candidate in measured:
                return self.profile.speed(candidate)
        return 0.0

    def restart_s(self, grid: Grid, kind: Kind) -> float:
        """Processes, model and groups anew."""
        return self.times.restart(grid, kind) / 1000

    def regroup_s(self, grid: Grid) -> float:
        """Groups anew among living processes."""
        return self.times.regroup(grid, Kind.REMOVE) / 1000 + self.profile.process_ms / 1000

    def copy_s(self, stages: int) -> float:
        """Sending the largest stage from one worker to another."""
        return float(self.times.stage_send(stages).max()) / 1000

    def save_s(self, stages: int) -> float:
        """One blocking save, or one load, of all state."""
        if self.store is Store.PARALLEL:
            return self.copy_s(stages)
        return float(self.times.stage_send(stages).sum()) / 1000

    def load_s(self, stages: int, first: bool = False) -> float:
        """Through the store at a change of layout, as the published baseline charges it.

        At the very first start there is nothing to save.
        """
        saves = self.store is Store.SERIAL and not first
        return self.save_s(stages) + (CHECKPOINT_MS / 1000 if saves else 0.0)

    def save_every_s(self, grid: Grid) -> float:
        """Training seconds between periodic saves: sqrt(2 · save · time between events).

        The time between events is that of the replayed stretch, which a real system would have
        to guess: it favours the baseline. Infinite where nothing happens.
        """
        if (known := self._save_every_s.get(grid)) is None:
            speed = self.speed(grid)
            step_s = self.profile.global_batch_samples / speed if speed else 0.0
            best_s = math.sqrt(2 * self.save_s(grid.pipeline) * self._between_events_s)
            known = max(LEAST_STEPS_BETWEEN_SAVES * step_s, best_s)
            self._save_every_s[grid] = known
        return known

    @cached_property
    def fixed_depth(self) -> int:
        """The one depth that trains the most over the scenario at its best widths.

        It knows the counts to come: this favours the baseline.
        """
        depths = sorted({grid.pipeline for grid in self.profile.measured})

        def total(stages: int) -> float:
            grids = (self.best_width(stages, count) for count in self.scenario.counts)
            return sum(self.speed(grid) for grid in grids)

        return max(depths, key=total)

    def best_width(self, stages: int, instances: int) -> Grid:
        """The fastest number of pipelines of a fixed depth; NOTHING where not one fits."""
        widths = (Grid(d, stages) for d in range(1, instances // stages + 1))
        return max(widths, key=self.speed, default=NOTHING)

    @cached_property
    def _save_every_s(self) -> dict[Grid, float]:
        return {}

    @cached_property
    def _between_events_s(self) -> float:
        return self.scenario.mean_seconds_between_events


class Event(NamedTuple):
    """One interval's event, with who was hit."""

    before: int
    added: int
    removed: int
    now: int
    """Instances afterwards."""
    victims: frozenset[int]
    """Numbers of the removed: cells of the grid first, then spares."""
    is_first: bool

    def hits(self, used: int) -> frozenset[int]:
        """Victims among the first so many instances."""
        return frozenset(victim for victim in self.victims if victim < used)


class Reaction(NamedTuple):
    """What an event costs."""

    pause_s: float = 0.0
    lost_samples: float = 0.0


class Baseline(ABC):
    """One replay of one system: ``react`` says what it does at each interval's event."""

    name = ""
    heeds_notices = False
    """Whether ``noticed`` and ``sudden`` make a difference."""
    heeds_store = True

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.grid = NOTHING
        """Layout; NOTHING while stopped."""

    @abstractmethod
    def react(self, event: Event) -> Reaction:
        """Choose the layout for this interval and say what the change costs."""

    def speed(self) -> float:
        """Samples per second with the layout, periodic saves and redundancy considered."""
        return self.setting.speed(self.grid)

    def degraded(self) -> tuple[float, float]:
        """For so many seconds after the pause, another speed."""
        return (0.0, 0.0)

    def trained(self, seconds: float, samples: float) -> None:  # noqa: B027 - not all save
        """Told after each interval how long it trained, and how many samples."""

    def note(self) -> str:
        """A choice worth printing beside the result."""
        return ""

    def sudden(self) -> bool:
        """Whether removals come without a notice."""
        return self.setting.notices is Notices.SUDDEN

    def kind(self, event: Event) -> Kind:
        """Whether the change brings in workers."""
        returns = event.added > 0 or event.is_first or self.grid == NOTHING
        return Kind.ADD if returns else Kind.REMOVE

    def run(self, rng: np.random.Generator) -> list[Interval]:
        """Replay the scenario with one draw of victims."""
        scenario = self.setting.scenario
        ledger = Ledger(scenario.interval_s)
        count = scenario.before
        for index in range(scenario.first, scenario.stop):
            event = _drawn(scenario, index, count, rng)
            pause_s, lost = self.react(event)
            overlap_s = 0.0
            if ledger.owed_s and self.grid != NOTHING:
                overlap_s = self.setting.restart_s(self.grid, Kind.REMOVE)
            ledger.charge(pause_s, overlap_s)
            done = ledger.earn(event.now, self.grid, self.speed(), lost, self.degraded())
            self.trained(scenario.interval_s - done.paused_s, done.samples + done.lost_samples)
            count = event.now
        return ledger.intervals


def _drawn(scenario: Scenario, index: int, count: int, rng: np.random.Generator) -> Event:
    added, removed = scenario.event(index)
    lost = min(removed, count)
    victims = frozenset(rng.choice(count, lost, replace=False).tolist()) if lost else frozenset()
    after = scenario.series.available[index]
    return Event(count, added, removed, after, victims, index == scenario.first)


class Saving:
    """The clock of periodic saves, for a baseline that has to roll back."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._since_s = 0.0
        self._since = 0.0
        """Samples, at whatever speeds they were trained."""

    def efficiency(self, grid: Grid) -> float:
        """Share of the time that is not spent saving."""
        if grid == NOTHING:
            return 1.0
        period_s = self._setting.save_every_s(grid)
        if math.isinf(period_s):
            return 1.0
        return period_s / (period_s + self._setting.save_s(grid.pipeline))

    def since(self, grid: Grid) -> float:
        """Samples trained since the last save; the clock starts anew."""
        lost = self._since if grid != NOTHING else 0.0
        self.restart()
        return lost

    def restart(self) -> None:
        """What there is has just been saved, or lost."""
        self._since_s = self._since = 0.0

    def trained(
        self, grid: Grid, seconds: float, samples: float, every_s: float | None = None
    ) -> None:
        """Let the clock run."""
        if grid == NOTHING or seconds <= 0:
            return
        period_s = self._setting.save_every_s(grid) if every_s is None else every_s
        passed_s = seconds * (self.efficiency(grid) if every_s is None else 1.0)
        self._since_s += passed_s
        self._since += samples
        if self._since_s >= period_s:
            self._since_s %= period_s
            self._since = samples * min(1.0, self._since_s / passed_s)


def replay_baseline(
    system: type[Baseline], setting: Setting, draws: int = NUM_DRAWS, seed: int = 0
) -> Outcome:
    """The mean over several draws of who vanishes."""
    replays = [system(setting).run(np.random.default_rng((seed, n))) for n in range(draws)]
    return outcome_of(
        replays,
        system.name,
        "seen",
        notices=setting.notices.value if system.heeds_notices else "",
        store=setting.store.value if system.heeds_store else "",
        note=system(setting).note(),
    )
