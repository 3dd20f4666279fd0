"""The lottery of preemptions in closed form: which stages keep how many replicas.

N instances hold a grid of D replicas × P stages and some spares; k of them vanish, every subset
of size k alike. With the truncated polynomial of one stage, T_d(x) = Σ_{j ≤ D-d} C(D,j)·x^j,

    A_d = P(every stage keeps ≥ d replicas) = [x^k] T_d(x)^P · (1+x)^(N-D·P) / C(N,k),

because T_d^P counts the victims' choices inside the grid that spare d replicas of each stage,
and (1+x)^(N-D·P) those among the spares. The same holds for any m of the P stages, with the
other cells taken as spares, which gives the law of the dearest stage in need.

The published code estimates these by 10,000 draws per key.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb, gammaln

from parcae_optimizer.kept import keeping

Floats = NDArray[np.float64]

MOST_INSTANCES = 1024
"""Coefficients of larger lotteries leave the range of a double."""
_KEPT_BYTES = 32_000_000
"""Of each kind of table: with 32 instances all there are; with 1,024 those of one request."""


def stage_survival(
    data: int, stages: int, instances: int, most_removed: int
) -> NDArray[np.float64]:
    """P(each of ``stages`` stages keeps at least d replicas), by victims and d.

    Args:
        data: D, replicas of every stage.
        stages: How many stages are looked at; the rest of the instances may be anything.
        instances: N, the lottery's size, at least ``data`` × ``stages``.
        most_removed: K, the most victims asked for, at most N.

    Returns:
        [K+1, D+1]: row k, column d. Column 0 is 1; read-only.

    Raises:
        ValueError: the grid does not fit, or the lottery is too large.
    """
    if data < 1 or stages < 1:
        raise ValueError(f"a grid of {data}x{stages} holds nothing")
    if not data * stages <= instances <= MOST_INSTANCES:
        raise ValueError(
            f"{instances} instances for {data}x{stages}: give at least {data * stages} and at "
            f"most {MOST_INSTANCES}"
        )
    if not 0 <= most_removed <= instances:
        raise ValueError(f"{most_removed} of {instances} instances cannot vanish")
    return _survival(data, stages, instances, most_removed)


@keeping(_KEPT_BYTES)
def _survival(data: int, stages: int, instances: int, most_removed: int) -> Floats:
    inside = _power(data, stages, most_removed)
    outside = _outside(instances - data * stages, instances, most_removed)
    table: Floats = np.minimum(outside @ inside.T, 1.0)
    table[:, 0] = 1.0
    table.setflags(write=False)
    return table


@keeping(_KEPT_BYTES)
def _power(data: int, stages: int, degree: int) -> Floats:
    """Coefficients of T_d(x)^stages up to x^degree, one row per d: [D+1, degree+1]."""
    if stages == 1:
        victims = np.arange(degree + 1)
        row = comb(data, victims)  # 0 beyond D
        keeps = victims[None, :] <= data - np.arange(data + 1)[:, None]
        first: Floats = np.where(keeps, row[None, :], 0.0)
        return first
    half = _power(data, stages // 2, degree)
    product = _multiply(half, half)
    return product if stages % 2 == 0 else _multiply(product, _power(data, 1, degree))


def _multiply(left: Floats, right: Floats) -> Floats:
    """Products of polynomials row by row, cut at the same degree."""
    degree = left.shape[1] - 1
    product = np.zeros_like(left)
    for power in range(degree + 1):
        column = right[:, power : power + 1]
        if column.any():
            product[:, power:] += left[:, : degree + 1 - power] * column
    return product


@keeping(_KEPT_BYTES)
def _outside(spare: int, instances: int, degree: int) -> Floats:
    """[k, j]: C(spare, k-j) / C(N, k), the weight of j victims inside when k vanish."""
    k = np.arange(degree + 1)
    rest = k[:, None] - k[None, :]
    possible = (rest >= 0) & (rest <= spare)
    rest = np.where(possible, rest, 0)
    logarithm = _log_comb(spare, rest) - _log_comb(instances, k)[:, None]
    return np.where(possible, np.exp(logarithm), 0.0)


def _log_comb(n: int, k: NDArray[np.int64]) -> Floats:
    result: Floats = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return result


def least_survivors(data: int, pipeline: int, instances: int, most_removed: int) -> Floats:
    """The law of M, the replicas that the hardest-hit stage keeps.

    P(M = d) = A_d - A_{d+1}.

    Returns:
        [K+1, D+1]: row k, column d; rows sum to 1.
    """
    at_least = stage_survival(data, pipeline, instances, most_removed)
    law: Floats = at_least.copy()
    law[:, :-1] -= at_least[:, 1:]
    return np.maximum(law, 0.0)


def stage_deficit(data: int, instances: int, removed: int, wanted: int) -> float:
    """Expected replicas that one stage lacks of ``wanted`` (≤ D) after ``removed`` victims.

    E[(d - alive)^+] = Σ_{c=1..d} P(alive < c). Times P this is what a grid has to bring in.
    """
    alive_at_least = stage_survival(data, 1, instances, removed)[removed]
    return float(wanted - alive_at_least[1 : wanted + 1].sum())


def dearest_in_need(
    seconds: Sequence[float], data: int, instances: int, most_removed: int
) -> Floats:
    """Expected largest price among the stages that keep fewer replicas than are wanted.

    With the stages sorted by price, c_1 ≥ c_2 ≥ …, E[max] = Σ_i (c_i - c_{i+1})·P(one of the
    first i is in need), and the last is 1 - A of i stages.

    Args:
        seconds: Price of bringing in a copy, per stage.
        data: D.
        instances: N.
        most_removed: K.

    Returns:
        [K+1, D+1] seconds: row k victims, column d replicas wanted.

    Raises:
        ValueError: as ``stage_survival``.
    """
    prices = [*sorted(seconds, reverse=True), 0.0]
    total: Floats = np.zeros((most_removed + 1, data + 1))
    for stages, (price, lower) in enumerate(itertools.pairwise(prices), start=1):
        if price > lower:
            safe = stage_survival(data, stages, instances, most_removed)
            total += (price - lower) * (1.0 - safe)
    return total


def victims_inside(cells: int, instances: int, most_removed: int) -> Floats:
    """P(h of k victims are grid cells): hypergeometric, [k, h] for k and h up to the most."""
    h = np.arange(most_removed + 1)[None, :]
    k = np.arange(most_removed + 1)[:, None]
    rest = k - h
    possible = (h <= cells) & (rest >= 0) & (rest <= instances - cells)
    h, rest = np.where(possible, h, 0), np.where(possible, rest, 0)
    logarithm = _log_comb(cells, h) + _log_comb(instances - cells, rest) - _log_comb(instances, k)
    return np.where(possible, np.exp(logarithm), 0.0)
