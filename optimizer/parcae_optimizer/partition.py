"""Cutting a row of layers into stages whose slowest is as fast as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from parcae_optimizer.rules import Floats

Ints = NDArray[np.int64]


def partition(weights: Sequence[float], parts: int) -> tuple[int, ...]:
    """Boundaries of the contiguous partition with the smallest largest part.

    Args:
        weights: Cost of each layer, at least 0.
        parts: Number of stages, at most the number of layers.

    Returns:
        ``parts + 1`` rising indices from 0 to ``len(weights)``.

    Raises:
        ValueError: more parts than layers, or none.
    """
    return partitions(weights, parts)[-1]


def partitions(weights: Sequence[float], most: int) -> list[tuple[int, ...]]:
    """The best partition into 1, 2, … ``most`` stages: one table serves them all.

    Among equally good ones the last stage is the longest, since earlier ones hold more
    micro-batches in flight; the stages before it are the best partition of what is left. Dynamic
    programming, O(most · layers · log layers): the best of k-1 parts only rises with the layers
    that it holds, and the last part only falls, so that they meet once.

    Raises:
        ValueError: more parts than layers, or none.
    """
    n = len(weights)
    if not 1 <= most <= n:
        raise ValueError(f"{n} layers cannot be cut into {most} stages")
    prefix = np.concatenate([[0.0], np.cumsum(np.asarray(weights, dtype=np.float64))])
    best = prefix  # best[i]: the largest part of layers 0 … i-1, cut into k parts
    cuts: list[Ints] = []
    found: list[tuple[int, ...]] = [(0, n)]
    for k in range(2, most + 1):
        best, cut = _one_part_more(prefix, best, k)
        cuts.append(cut)
        found.append(_walk_back(cuts, n))
    return found


def _one_part_more(prefix: Floats, best: Floats, k: int) -> tuple[Floats, Ints]:
    """From the best of k-1 parts to the best of k, and where its last part begins.

    Both are [layers + 1]; fewer than k layers cannot be cut.
    """
    ends = np.arange(k, len(prefix))
    first, total = k - 1, prefix[k:]
    inside = best[first:-1]

    def largest(begins: Ints) -> Floats:
        return np.maximum(best[begins], total - prefix[begins])

    # The best is where rising and falling meet: there, or just before. Sums round, so the meeting
    # point is looked at with its neighbours.
    meeting = first + np.searchsorted(inside + prefix[first:-1], total)
    near = np.clip(meeting + np.array([[-2], [-1], [0], [1]]), first, ends - 1)
    worst = np.min([largest(begins) for begins in near], axis=0)
    begins = np.clip(first + np.searchsorted(prefix[first:-1], total - worst), first, ends - 1)
    while (more := (begins > first) & (largest(np.maximum(begins - 1, first)) <= worst)).any():
        begins = begins - more
    while (less := largest(begins) > worst).any():
        begins = begins + less
    row, cut = np.full(len(prefix), np.inf), np.zeros(len(prefix), dtype=np.int64)
    row[k:], cut[k:] = worst, begins
    return row, cut


def _walk_back(cuts: list[Ints], n: int) -> tuple[int, ...]:
    boundaries = [n]
    for cut in reversed(cuts):
        boundaries.append(int(cut[boundaries[-1]]))
    return (0, *reversed(boundaries))


def even_split(total: int, parts: int) -> tuple[int, ...]:
    """Whole numbers that add up to ``total`` and differ by at most one, the larger first."""
    quotient, rest = divmod(total, parts)
    return tuple(quotient + (index < rest) for index in range(parts))
