"""Who survives when instances vanish uniformly at random, in closed form.

Cells of a grid D×P are numbered r·P + s (replica r, stage s); h of them vanish, every set of h
being equally likely. All answers are tables over h, so that a mixture over the number of
victims inside the grid (hypergeometric, as spares may be hit instead) is one product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb

import numpy as np

from parcae_optimizer.rules import Floats, Grid

Poly = list[int]
"""Coefficients by victims; whole numbers, so that counting is exact at any size."""


@lru_cache(maxsize=100_000)
def inside(instances: int, cells: int, removed: int) -> Floats:
    """Law of the victims inside the grid.

    Returns:
        [removed + 1] probability that h of the ``removed`` among ``instances`` hit one of the
        ``cells``: C(cells, h)·C(instances - cells, removed - h) / C(instances, removed).
    """
    whole = comb(instances, removed)
    spare = instances - cells
    return np.array([comb(cells, h) * comb(spare, removed - h) / whole for h in range(removed + 1)])


def times(left: Poly, right: Poly, most: int) -> Poly:
    """The product of two polynomials, cut after degree ``most``."""
    product = [0] * (most + 1)
    for i, a in enumerate(left):
        if a:
            for j, b in enumerate(right[: most + 1 - i]):
                product[i + j] += a * b
    return product


def plus(left: Poly, right: Poly) -> Poly:
    """The sum of two polynomials of equal length."""
    return [a + b for a, b in zip(left, right, strict=True)]


@lru_cache(maxsize=20_000)
def keeps(grid: Grid, replicas: int, most: int) -> Floats:
    """Probability that every stage keeps at least so many replicas.

    Returns:
        [most + 1] by victims h: [x^h] (Σ_{j ≤ D-d} C(D, j) x^j)^P / C(D·P, h).
    """
    allowed: Poly = [comb(grid.data, j) for j in range(grid.data - replicas + 1)]
    ways: Poly = [1]
    for _ in range(grid.pipeline):
        ways = times(ways, allowed, most)
    return _chances(ways, grid, most)


def deficit_mean(grid: Grid, replicas: int, costs: Sequence[float], most: int) -> Floats:
    """Mean cost of refilling the stages that no longer have enough replicas.

    A stage with fewer than ``replicas`` alive is in need. The price is the larger of two: the
    dearest stage in need, and the sum over stages that are lost: in need of all replicas (the
    last stage also of all but one), as the published rules count them.

    Args:
        grid: The layout before.
        replicas: Wanted of each stage, d.
        costs: [P] of refilling each stage.
        most: Victims to tabulate.

    Returns:
        [most + 1] by victims h; 0 where no stage is in need.
    """
    classes = sorted(set(costs))
    # (dearest class in need or -1, lost stages of each class) → ways by victims
    states: dict[tuple[int, tuple[int, ...]], Poly] = {(-1, (0,) * len(classes)): [1]}
    for stage, cost in enumerate(costs):
        rank = classes.index(cost)
        last = stage == grid.pipeline - 1
        options = _stage_options(grid.data, replicas, last)
        following: dict[tuple[int, tuple[int, ...]], Poly] = {}
        for (dearest, lost), ways in states.items():
            for in_need, is_lost, choices in options:
                key = (
                    max(dearest, rank) if in_need else dearest,
                    tuple(n + (is_lost and i == rank) for i, n in enumerate(lost)),
                )
                more = times(ways, choices, most)
                if any(more):
                    have = following.get(key)
                    following[key] = more if have is None else plus(have, more)
        states = following
    total = np.zeros(most + 1)
    for (dearest, lost), ways in states.items():
        if dearest >= 0:
            price = sum(n * cost for n, cost in zip(lost, classes, strict=True))
            total += _chances(ways, grid, most) * max(classes[dearest], price)
    return total


def _stage_options(data: int, replicas: int, last: bool) -> list[tuple[bool, bool, Poly]]:
    """(in need, lost, ways by victims) of one stage; options without ways are left out."""
    options: dict[tuple[bool, bool], Poly] = {}
    for victims in range(data + 1):
        need = max(replicas - (data - victims), 0)
        lost = need > 0 and (need == replicas or (last and need == replicas - 1))
        ways = options.setdefault((need > 0, lost), [0] * (data + 1))
        ways[victims] = comb(data, victims)
    return [(need, lost, ways) for (need, lost), ways in options.items()]


def _chances(ways: Iterable[int], grid: Grid, most: int) -> Floats:
    """Ways by victims, divided by the number of victim sets."""
    chances = np.zeros(most + 1)
    for h, count in enumerate(ways):
        if h <= min(most, grid.workers) and count:
            chances[h] = count / comb(grid.workers, h)
    return chances
