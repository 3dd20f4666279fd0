"""The stochastic programme: which layout trains the most samples under a forecast.

State (layout, instances); one stage per interval. In interval t the pair (k removed, j added) is
drawn from the forecast's law of that interval, then the layout for the interval is chosen, its
expected pause is paid, and it trains for the rest:

    V_t(a, n) = E_{k,j} max_b [ speed(b)·(L - c(n, a, k → b)) + V_{t+1}(b, n - k + j) ],

with L the interval and c the expected pause over uniformly random victims (``Rules``). A choice
sees the event of its own interval and never the future: averaging the best of each sample path
instead would reward layouts that only a prophet can use.

With ``ahead`` a choice does not even see its own interval's event: what was chosen goes on with as
many replicas as fit after it, or a shorter pipeline. So a choice may ask for more replicas than
there is room for yet; they start in the interval in which others join, and where nobody joins
nothing is lost.

A pause longer than an interval is charged in full at once, which is what carrying it over costs.
Nothing is discounted; what comes after the horizon is ignored.

The draws of different intervals are taken as independent given their own law: the paths' batches
stay whole, their runs do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parcae_optimizer.rules import NOTHING, Floats, Grid, Rules
from parcae_optimizer.tables import CostTables
from parcae_predictor.forecast import Forecast

MOST_OUTCOMES = 12
"""Pairs (removed, added) told apart per interval; rarer ones count as their likeliest kin."""
MOST_GRIDS = 16
"""Layouts looked at per instance count range."""
MOST_COUNTS = 48
"""Instance counts told apart; of a wider range the others are taken as the nearest of these."""
MOST_REMOVED = 32
"""A change after more victims than these costs as after so many: work stays bounded."""
_TIE = 1e-9
_IMPOSSIBLE = -1e250
_HOPELESS = -1e200
"""Below any value that can be, and above any that an impossible outcome has a part in."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The law of one interval."""

    removed: NDArray[np.int64]
    added: NDArray[np.int64]
    probability: Floats
    """[outcomes] each."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A layout and what it is expected to train."""

    grid: Grid
    samples: float
    """Over this interval and the horizon."""
    pause_seconds: float
    """Expected, of changing to it now."""


@dataclass(frozen=True)
class Decision:
    """The answer of a search."""

    chosen: Choice
    ranking: tuple[Choice, ...]
    """All that were compared, best first."""
    seconds: float
    """What ``samples`` is expected over."""


def laws_of(forecast: Forecast) -> list[Outcomes]:
    """The law of each coming interval, from a forecast's paths."""
    paths = zip(forecast.removed.T, forecast.added.T, strict=True)
    return [outcomes_of(removed, added) for removed, added in paths]


def reach_of(forecast: Forecast, share: float) -> tuple[int, int]:
    """Fewest and most instances that all but 1 - ``share`` of a forecast stay above and below."""
    low, high = np.quantile(forecast.available, [1 - share, share], method="nearest")
    return min(int(low), forecast.now), max(int(high), forecast.now)


def outcomes_of(
    removed: NDArray[np.int64], added: NDArray[np.int64], most: int = MOST_OUTCOMES
) -> Outcomes:
    """The law of one interval from its sample paths: [paths] each."""
    pairs, counts = np.unique(np.stack([removed, added], axis=1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept, rest = order[:most], order[most:]
    weight = counts[kept].astype(np.float64)
    for index in rest:  # to the nearest outcome kept
        distance = np.abs(pairs[kept] - pairs[index]).sum(axis=1)
        weight[int(np.argmin(distance))] += counts[index]
    return Outcomes(
        removed=pairs[kept, 0],
        added=pairs[kept, 1],
        probability=weight / weight.sum(),
    )


@dataclass
class Programme:
    """A search under one forecast; values are computed once and serve every question."""

    rules: Rules
    tables: CostTables
    """Of rules with the same costs; hand the same ones in again to keep what was worked out."""
    interval_seconds: float
    outcomes: Sequence[Outcomes]
    """Of the coming intervals, the next one first."""
    least: int
    """Fewest and most instances that matter; beyond them counts are taken as these."""
    most: int
    current: Grid = NOTHING
    most_grids: int = MOST_GRIDS
    ahead: bool = False
    """Choices are made before their interval's event is seen, here and in all later intervals."""

    @cached_property
    def grids(self) -> tuple[Grid, ...]:
        """The layouts looked at: the fastest for each count in reach, today's, and none."""
        worth = self.tables.worth(self.least, self.most, self.most_grids, self.rules.speed)
        found = {self.tables.universe[i] for i in worth}
        if self.ahead:  # with what is left of them, and what they may grow into
            depths = {grid.pipeline for grid in (*found, self.current)}
            found |= {g for g in self.tables.columns if g.pipeline in depths or g.data == 1}
            found = {g for g in found if g.workers <= self.most}
        return tuple(sorted({*found, self.current, NOTHING}))

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """The instance counts told apart, rising."""
        wanted = min(MOST_COUNTS, self.most - self.least + 1)
        return np.unique(np.linspace(self.least, self.most, wanted).round().astype(np.int64))

    def _row(self, instances: ArrayLike) -> NDArray[np.intp]:
        """Where the nearest count lies among ``_counts``."""
        edges = (self._counts[:-1] + self._counts[1:]) / 2
        return np.asarray(np.searchsorted(edges, instances))

    @cached_property
    def _speeds(self) -> Floats:
        return np.array([self.rules.speed(g) for g in self.grids])

    @cached_property
    def _most_removed(self) -> int:
        """Rounded up to a power of two, so that tables are asked for in few sizes."""
        most = max((int(o.removed.max()) for o in self.outcomes), default=0)
        return min(1 << max(0, most - 1).bit_length(), MOST_REMOVED)

    def _losses(self, instances: int) -> Floats:
        """[removed, before, after]: samples that the expected pause costs."""
        if instances not in self._kept:
            costs = np.stack([self._costs(instances, g) for g in self.grids], axis=1)
            self._kept[instances] = costs * self._speeds
        return self._kept[instances]

    @cached_property
    def _kept(self) -> dict[int, Floats]:
        return {}

    def _costs(self, instances: int, before: Grid) -> Floats:
        """[removed, after] seconds; to hold nothing costs nothing."""
        something = [i for i, grid in enumerate(self.grids) if grid != NOTHING]
        rows = self.tables.rows(
            instances, before, self._most_removed, [self.grids[i] for i in something]
        )
        found = np.zeros((rows.shape[0], len(self.grids)))
        found[:, something] = rows
        return found

    def _allowed(self, instances: int) -> NDArray[np.bool_]:
        allowed = {*self.rules.grids(instances), NOTHING}
        return np.array([g in allowed for g in self.grids])

    @cached_property
    def _forbidden(self) -> Floats:
        """[count, grid]: 0, or minus infinity where it does not fit."""
        return np.array([np.where(self._allowed(int(n)), 0.0, _IMPOSSIBLE) for n in self._counts])

    @cached_property
    def values(self) -> list[Floats]:
        """V[t]: [count, grid] expected samples from interval t on; the last is 0."""
        later = np.zeros((len(self._counts), len(self.grids)))
        table = [later]
        for t in reversed(range(len(self.outcomes))):
            after = self._after(later)
            if self.ahead:
                later = self._before_ahead(t, after)
            else:
                outcomes = self.outcomes[t]
                later = np.stack([self._before(int(n), outcomes, after) for n in self._counts])
            table.append(later)
        return table[::-1]

    def _after(self, later: Floats) -> Floats:
        """[count, grid] samples of an interval without a pause, and of what follows."""
        return self._speeds * self.interval_seconds + later + self._forbidden

    def _before(self, instances: int, outcomes: Outcomes, after: Floats) -> Floats:
        """[grid] expected over what the interval brings."""
        removed, counts = self._ends(instances, outcomes)
        gain = after[self._row(counts)][:, None, :] - self._losses(instances)[removed]
        best: Floats = outcomes.probability @ gain.max(axis=2)
        return best

    def _ends(
        self, instances: int, outcomes: Outcomes
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[outcomes] each: victims as tables know them, and how many there are in the end."""
        removed = np.minimum(outcomes.removed, instances)
        counts = np.clip(instances - removed + outcomes.added, self.least, self.most)
        return np.minimum(removed, self._most_removed), counts

    def _before_ahead(self, t: int, after: Floats) -> Floats:
        """[count, grid] expected over what interval t brings, the choice being made before."""
        kept = np.take_along_axis(after, self._cut, axis=1)
        chances = self.outcomes[t].probability
        rows = self._passages[self._law_of[t]]
        gain = np.tensordot(kept[rows], chances, axes=([1], [0]))  # [count, chosen]
        best: Floats = (gain[:, None, :] - self._losses_ahead[:, self._law_of[t]]).max(axis=2)
        return best

    @cached_property
    def _cut(self) -> NDArray[np.int64]:
        """[count, grid] index of what is left of each choice."""
        return np.stack([self._clamped(int(n)) for n in self._counts])

    @cached_property
    def _passages(self) -> list[NDArray[np.intp]]:
        """[law]: [count, outcome] row of the count that the outcome leads to."""
        return [
            np.stack([self._row(self._ends(int(n), law)[1]) for n in self._counts])
            for law in self._laws
        ]

    @cached_property
    def _laws(self) -> list[Outcomes]:
        """The different ones; intervals may share theirs."""
        return list({id(law): law for law in self.outcomes}.values())

    @cached_property
    def _law_of(self) -> list[int]:
        """[t] index into ``_laws``."""
        place = {id(law): i for i, law in enumerate(self._laws)}
        return [place[id(law)] for law in self.outcomes]

    @cached_property
    def _losses_ahead(self) -> Floats:
        """[count, law, before, chosen] expected samples that the pause of a choice costs.

        Outcomes that several laws have in common are looked at once.
        """
        every = [np.stack([o.removed, o.added]) for o in self._laws]
        pairs, where = np.unique(np.concatenate(every, axis=1), axis=1, return_inverse=True)
        chances = np.zeros((len(every), pairs.shape[1]))
        stages = np.repeat(np.arange(len(every)), [e.shape[1] for e in every])
        chances[stages, where.ravel()] = np.concatenate([o.probability for o in self._laws])
        both = Outcomes(pairs[0], pairs[1], np.zeros(pairs.shape[1]))
        size = len(self.grids)
        found = np.zeros((len(self._counts), len(every), size, size))
        for place, n in enumerate(self._counts.tolist()):
            removed, counts = self._ends(n, both)
            target = self._cut[self._row(counts)]
            losses = self._losses(n)[removed[:, None], :, target]  # [pair, chosen, before]
            mean = chances @ losses.reshape(len(removed), -1)
            found[place] = mean.reshape(-1, size, size).transpose(0, 2, 1)
        return found

    def expected(self, instances: int, grid: Grid) -> float:
        """Samples over all coming intervals, from a layout that is looked at."""
        return float(self.values[0][self._row(instances), self.grids.index(grid)])

    def decide(
        self, instances: int, pauses: Floats, elapsed: int = 0, *, carried: bool = False
    ) -> Decision:
        """Choose for the interval that begins, its event seen.

        Args:
            instances: How many there are now, the event's change counted.
            pauses: [grid] expected (or known) seconds of changing to each of ``grids``.
            elapsed: So many of the coming intervals are over.
            carried: A pause that outlasts this interval is broken off by a change in the next one,
                which then costs itself and ``overlap_seconds``; else it is served to its end.
        """
        later = self.values[elapsed][self._row(instances)]
        if carried and elapsed < len(self.outcomes):
            later = later.copy()
            for i in np.flatnonzero(pauses > self.interval_seconds):
                rest = float(pauses[i]) - self.interval_seconds
                later[i] = self._owing(instances, self.grids[i], rest, elapsed)
                later[i] += self._speeds[i] * rest  # not charged now
        samples = self._speeds * (self.interval_seconds - pauses) + later
        samples = np.where(self._allowed(instances), samples, _IMPOSSIBLE)
        return self._rank(samples, pauses)

    def _owing(self, instances: int, grid: Grid, owed_seconds: float, t: int) -> float:
        """Expected from interval t on, with the rest of a pause still owed."""
        outcomes, after = self.outcomes[t], self._after(self.values[t + 1])
        removed, counts = self._ends(instances, outcomes)
        overlaps = np.array([self.rules.overlap_seconds(g) for g in self.grids])
        pause = self._costs(instances, grid)[removed]
        pause = np.where(pause > 0, pause + overlaps, owed_seconds)
        best = (after[self._row(counts)] - self._speeds * pause).max(axis=1)
        return float(outcomes.probability @ best)

    def decide_ahead(self, instances: int, owed_seconds: float = 0.0, elapsed: int = 0) -> Decision:
        """Choose for the coming interval before its event is seen; needs ``ahead``.

        The choice may have more replicas than fit now.

        Args:
            instances: How many there are now.
            owed_seconds: What is left of an earlier change's pause.
            elapsed: So many of the coming intervals are over.
        """
        first, after = self.outcomes[elapsed], self._after(self.values[elapsed + 1])
        overlaps = np.array([self.rules.overlap_seconds(g) for g in self.grids])
        samples, pauses = np.zeros(len(self.grids)), np.zeros(len(self.grids))
        costs = self._costs(instances, self.current)
        ends = zip(*self._ends(instances, first), first.probability, strict=True)
        for removed, n, probability in ends:
            target = self._clamped(int(n))
            pause = costs[removed][target]
            if owed_seconds:
                pause = np.where(pause > 0, pause + overlaps[target], owed_seconds)
            gain = after[self._row(n)][target] - self._speeds[target] * pause
            samples += probability * gain
            pauses += probability * pause
        return self._rank(samples, pauses)

    def _clamped(self, instances: int) -> NDArray[np.int64]:
        """[grid] index of what is left of each layout when it no longer fits.

        Fewer replicas; of a single one a shorter pipeline of all there are.
        """
        if instances not in self._left:
            position = {grid: i for i, grid in enumerate(self.grids)}
            none = position[NOTHING]
            left = [
                grid
                if grid.workers <= instances
                else Grid(data, grid.pipeline)
                if (data := instances // grid.pipeline)
                else Grid(1, instances)
                for grid in self.grids
            ]
            self._left[instances] = np.array([position.get(grid, none) for grid in left])
        return self._left[instances]

    @cached_property
    def _left(self) -> dict[int, NDArray[np.int64]]:
        return {}

    def _rank(self, samples: Floats, pauses: Floats) -> Decision:
        """Best first; among equals today's layout, which moves nothing."""
        margin = _TIE * max(1.0, float(np.abs(samples[samples > _HOPELESS]).max(initial=0)))
        rounded = np.round(samples / margin) * margin

        def rank(i: int) -> tuple[float, bool, float, Grid]:
            return -rounded[i], self.grids[i] != self.current, pauses[i], self.grids[i]

        order = [i for i in range(len(self.grids)) if samples[i] > _HOPELESS]
        ranking = tuple(
            Choice(self.grids[i], float(samples[i]), float(pauses[i]))
            for i in sorted(order, key=rank)
        )
        chosen = ranking[0] if ranking else Choice(NOTHING, 0.0, 0.0)
        seconds = self.interval_seconds * (len(self.values) or 1)
        return Decision(chosen, ranking, seconds)
