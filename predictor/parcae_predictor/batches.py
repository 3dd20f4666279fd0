"""How large batches are, although the count and the room cut them short.

A batch of additions that fills the capacity says only that it was at least so large; so does a
batch of removals that takes all. Such sizes are censored, and the law of the sizes is the estimate
of Kaplan and Meier (1958). What no seen batch bounds is the probability of "all".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ALL = 1_000_000
"""The size of a batch that takes all there is."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Sizes that were seen, one element per batch."""

    sizes: Floats
    """Instances."""
    weights: Floats
    cut_short: NDArray[np.bool_]
    """Whether the batch took all there was."""

    def plus(self, other: Batches) -> Batches:
        """Both together."""
        return Batches(
            np.concatenate((self.sizes, other.sizes)),
            np.concatenate((self.weights, other.weights)),
            np.concatenate((self.cut_short, other.cut_short)),
        )

    def law(self) -> Sizes:
        """The law of the sizes if nothing cut them short; always 1 if none was seen."""
        order = np.lexsort((self.cut_short, self.sizes))
        weights, known = self.weights[order], ~self.cut_short[order]
        at_risk = np.cumsum(weights[::-1])[::-1]
        if not len(order) or not at_risk[0] > 0:
            return Sizes(np.ones(1, dtype=np.int64), np.ones(1))
        ends = np.divide(weights * known, at_risk, out=np.zeros_like(weights), where=at_risk > 0)
        beyond = np.cumprod(1.0 - np.minimum(ends, 1.0))
        sizes = np.append(self.sizes[order].astype(np.int64), ALL)
        return Sizes(sizes, np.append(1.0 - beyond, 1.0))


@dataclass(frozen=True, slots=True)
class Sizes:
    """A law of sizes."""

    sizes: Ints
    """Instances, ascending; repeated ones are allowed, ``ALL`` is the last if it can happen."""
    cumulative: Floats
    """Probability of this size or one before it in the row; the last is 1."""

    def draw(self, number: int, rng: np.random.Generator) -> Ints:
        """Independent sizes."""
        return self.at(rng.random(number))

    def at(self, levels: Floats) -> Ints:
        """The quantiles at levels in [0, 1)."""
        picked = np.searchsorted(self.cumulative, levels, side="right")
        # Rounding may leave the sum a hair below 1.
        drawn: Ints = self.sizes[np.minimum(picked, len(self.sizes) - 1)]
        return drawn

    def probability_of_all(self) -> float:
        """That a batch takes all, however many there are."""
        if self.sizes[-1] < ALL:
            return 0.0
        return float(1.0 - self.cumulative[-2]) if len(self.sizes) > 1 else 1.0


def from_shares(shares: Floats, weight: float, whole: int) -> Batches:
    """Batches given as shares of ``whole``, each at least 1 instance, together of one weight."""
    sizes = np.maximum(np.rint(shares * whole), 1.0)
    each = weight / max(len(sizes), 1)
    return Batches(sizes, np.full(len(sizes), each), shares >= 1.0)
