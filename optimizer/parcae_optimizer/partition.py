"""Cutting a row of layers into stages whose slowest is as fast as possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


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
    programming, O(most · layers²) at worst; parts that have grown too heavy end the search early.

    Raises:
        ValueError: more parts than layers, or none.
    """
    n = len(weights)
    if not 1 <= most <= n:
        raise ValueError(f"{n} layers cannot be cut into {most} stages")
    prefix = [0.0, *accumulate(weights)]
    best = list(prefix)  # best[i]: the largest part of layers 0 … i-1, cut into k parts
    cuts: list[list[int]] = []
    found: list[tuple[int, ...]] = [(0, n)]
    for k in range(2, most + 1):
        best, cut = _one_part_more(prefix, best, k)
        cuts.append(cut)
        found.append(_walk_back(cuts, n))
    return found


def _one_part_more(prefix: list[float], best: list[float], k: int) -> tuple[list[float], list[int]]:
    """From the best of k-1 parts to the best of k, and where its last part begins."""
    n = len(prefix) - 1
    row = [float("inf")] * (n + 1)
    cut = [0] * (n + 1)
    for i in range(k, n + 1):
        for j in range(i - 1, k - 2, -1):
            last = prefix[i] - prefix[j]
            if last > row[i]:
                break  # the last part only grows from here
            worst = max(best[j], last)
            if worst <= row[i]:
                row[i], cut[i] = worst, j
    return row, cut


def _walk_back(cuts: list[list[int]], n: int) -> tuple[int, ...]:
    boundaries = [n]
    for cut in reversed(cuts):
        boundaries.append(cut[boundaries[-1]])
    return (0, *reversed(boundaries))


def even_split(total: int, parts: int) -> tuple[int, ...]:
    """Whole numbers that add up to ``total`` and differ by at most one, the larger first."""
    quotient, rest = divmod(total, parts)
    return tuple(quotient + (index < rest) for index in range(parts))
