"""Handing new stages to survivors: what the last one served lacks, in closed form.

The new stages are handed out in order; each takes, of the survivors not yet taken, the one that
lacks the fewest bytes of it, ties to the lowest cell number. The published rules charge what the
*last* survivor served lacks.

Cells are looked at lazily. Which cells get looked at depends only on which of the looked-at ones
are dead, and every pattern of j dead among m looked-at cells is equally likely, with chance
C(c-m, h-j) / C(c, h) for h victims among c cells. So paths are counted once for all h. Members
of one old stage are looked at in order of replica, so a state is a count per old stage. All new
depths are walked together, as rows of one array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from parcae_optimizer.rules import Floats, Grid

Ints = NDArray[np.int64]
MOST_EXACT = 6
"""Victims up to which hand-outs are counted; the number of paths grows with their factorial."""
NUM_DRAWS = 60
"""Seeded lotteries for each number of victims beyond that."""


def mean_sends(
    before: Grid, lackings: Sequence[Floats], send: Callable[[Floats], Floats], most: int
) -> list[Floats]:
    """Mean time of sending what the last survivor served lacks, for several new depths.

    Args:
        before: The layout before.
        lackings: Per new depth: [new stages, old stages] bytes that a member of each old stage
            lacks of each new stage.
        send: Time of sending so many bytes.
        most: Victims to tabulate.

    Returns:
        Per new depth: [most + 1] by victims h. Exact up to MOST_EXACT victims; beyond, the mean
        of NUM_DRAWS seeded lotteries.
    """
    exact = min(most, MOST_EXACT)
    walk = _Walk(before, lackings, exact)
    prices = send(walk.values)
    means = walk.means(prices)
    if most > exact:
        drawn = [_drawn(before, lacking, send, exact + 1, most) for lacking in lackings]
        return [np.concatenate([mean, more]) for mean, more in zip(means, drawn, strict=True)]
    return list(means)


class _States(NamedTuple):
    """Rows: hand-outs that have looked at the same members."""

    depth: Ints
    """[rows] which new depth."""
    looked: Ints
    """[rows, P] looked-at members of each old stage, in order of replica."""
    last: Ints
    """[rows] index of what the last one served lacks."""
    ways: Floats
    """[rows] paths that lead here."""

    def where(self, mask: NDArray[np.bool_]) -> _States:
        return _States(self.depth[mask], self.looked[mask], self.last[mask], self.ways[mask])


class _Walk:
    """All hand-outs from one layout, to several depths, with at most ``most`` dead."""

    def __init__(self, before: Grid, lackings: Sequence[Floats], most: int) -> None:
        self._before = before
        self._most = most
        self._depths = np.array([len(lacking) for lacking in lackings], dtype=np.int64)
        flat = np.concatenate([[0.0], *(lacking.ravel() for lacking in lackings)])
        self.values, index = np.unique(flat, return_inverse=True)
        longest = int(self._depths.max())
        shape = (len(lackings), longest, before.pipeline)
        self._lack = np.zeros(shape, dtype=np.int64)
        start = 1
        for i, lacking in enumerate(lackings):
            stop = start + lacking.size
            self._lack[i, : len(lacking)] = index[start:stop].reshape(lacking.shape)
            start = stop
        self._weights = _weights(before)
        self._ended: list[tuple[_States, int]] = []
        """With how many were served."""
        self._run(longest)

    def means(self, prices: Floats) -> list[Floats]:
        """Mean price per new depth, [most + 1] by victims, of prices by lacking value."""
        cells = self._before.workers
        total = np.zeros((len(self._depths), self._most + 1))
        for states, served in self._ended:
            looked = states.looked.sum(axis=1)
            chances = _chances(cells, self._most, looked, served)
            np.add.at(total, states.depth, chances * (states.ways * prices[states.last])[:, None])
        return list(total)

    def _run(self, longest: int) -> None:
        count = len(self._depths)
        states = _States(
            np.arange(count),
            np.zeros((count, self._before.pipeline), dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.ones(count),
        )
        for served in range(longest):
            states = self._end(states, self._depths[states.depth] == served, served)
            if not len(states.ways):
                return
            states = self._serve(states, served)
        self._end(states, np.ones(len(states.ways), dtype=np.bool_), longest)

    def _end(self, states: _States, ends: NDArray[np.bool_], served: int) -> _States:
        if ends.any():
            self._ended.append((states.where(ends), served))
        return states.where(~ends)

    def _serve(self, states: _States, served: int) -> _States:
        """Look at members in order of preference until one is alive; every one may be dead."""
        data, stages = self._before
        cells = self._before.workers
        alive: list[_States] = []
        for _ in range(self._most + 1):
            looked = states.looked.sum(axis=1)
            states = self._end(states, looked == cells, served)
            if not len(states.ways):
                break
            lack = self._lack[states.depth, served]
            order = (lack * (data + 1) + states.looked) * stages + np.arange(stages)
            order[states.looked == data] = np.iinfo(np.int64).max
            chosen = order.argmin(axis=1)
            rows = np.arange(len(chosen))
            after = states.looked.copy()
            after[rows, chosen] += 1
            # What the last one lacked matters only at the end, or where survivors may run out.
            remember = (self._depths[states.depth] == served + 1) | (
                served + 1 + self._most >= cells
            )
            last = np.where(remember, lack[rows, chosen], 0)
            alive.append(_States(states.depth, after, last, states.ways))
            states = states._replace(looked=after)
            states = states.where(after.sum(axis=1) - served <= self._most)
        return self._merged(alive)

    def _merged(self, parts: list[_States]) -> _States:
        if not parts:
            empty = np.zeros(0, dtype=np.int64)
            return _States(empty, empty, empty, np.zeros(0))
        depth, looked, last, ways = (np.concatenate(column) for column in zip(*parts, strict=True))
        code = looked.astype(np.uint64) @ self._weights[1:]
        code += (depth * len(self.values) + last).astype(np.uint64) * self._weights[0]
        _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        return _States(
            depth[first],
            looked[first],
            last[first],
            np.bincount(inverse, weights=ways).astype(np.float64),
        )


def _weights(before: Grid) -> NDArray[np.uint64]:
    """[1 + P] weights that make one number of a state.

    Exact (digits of a number) on grids of usual size; else random weights, whose sums are
    equal for different states with a chance of 1e-19 a pair.
    """
    base = before.data + 1
    if base**before.pipeline < 2**44:
        digits = [base ** (before.pipeline), *(base**s for s in range(before.pipeline))]
        return np.array(digits, dtype=np.uint64)
    rng = np.random.default_rng(before.workers)
    return rng.integers(1, 2**64, size=1 + before.pipeline, dtype=np.uint64)


def _chances(cells: int, most: int, looked: Ints, served: int) -> Floats:
    """[rows, most + 1] chance of one pattern of dead among the looked-at, by victims h."""
    table = np.zeros((cells + 1, most + 1))
    for m in np.unique(looked).tolist():
        dead = m - served
        for h in range(dead, min(most, cells) + 1):
            table[m, h] = comb(cells - m, h - dead) / comb(cells, h)
    return np.asarray(table[looked])


def _drawn(
    before: Grid, lacking: Floats, send: Callable[[Floats], Floats], first: int, most: int
) -> Floats:
    """[most - first + 1] mean times by victims, from seeded lotteries."""
    cells = before.workers
    rng = np.random.default_rng(before.data * 10_007 + before.pipeline)
    victims = np.minimum(np.arange(first, most + 1), cells)
    ranks = rng.random((NUM_DRAWS, cells)).argsort(axis=1).argsort(axis=1)
    free = (ranks[None] >= victims[:, None, None]).reshape(-1, cells)
    rows = np.arange(len(free))
    last = np.zeros(len(free))
    stage_of = np.arange(cells) % before.pipeline
    for lacks in lacking:
        # The first free cell in order of preference; equal ones by number.
        order = np.argsort(lacks[stage_of], kind="stable")
        chosen = order[free[:, order].argmax(axis=1)]
        served = free[rows, chosen]
        last = np.where(served, lacks[stage_of[chosen]], last)
        free[rows, chosen] = False
    return np.asarray(send(last).reshape(len(victims), NUM_DRAWS).mean(axis=1))
