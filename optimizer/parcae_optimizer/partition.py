"""Cutting a row of layers into stages whose slowest is as fast as possible."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate


def partition(weights: Sequence[float], parts: int) -> tuple[int, ...]:
    """Boundaries of the contiguous partition with the smallest largest part.

    Among equally good ones, later stages are filled first to the limit, so that earlier stages,
    which hold more micro-batches in flight, are the lighter. Dynamic programming,
    O(parts · layers²).

    Args:
        weights: Cost of each layer, at least 0.
        parts: Number of stages, at most the number of layers.

    Returns:
        ``parts + 1`` rising indices from 0 to ``len(weights)``.

    Raises:
        ValueError: more parts than layers.
    """
    n = len(weights)
    if not 1 <= parts <= n:
        raise ValueError(f"{n} layers cannot be cut into {parts} stages")
    prefix = [0.0, *accumulate(weights)]
    best = [prefix[i] for i in range(n + 1)]  # one part: layers 0 … i-1
    cuts: list[list[int]] = []
    for k in range(2, parts + 1):
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
        best = row
        cuts.append(cut)
    boundaries = [n]
    for cut in reversed(cuts):
        boundaries.append(cut[boundaries[-1]])
    return (0, *reversed(boundaries))


def even_split(total: int, parts: int) -> tuple[int, ...]:
    """Whole numbers that add up to ``total`` and differ by at most one, the larger first."""
    quotient, rest = divmod(total, parts)
    return tuple(quotient + (index < rest) for index in range(parts))
