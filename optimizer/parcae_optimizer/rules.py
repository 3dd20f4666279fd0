"""What a layout earns and what a change costs: the seam between plan search and cost models.

The search knows nothing of models and machines: measured profiles, tables of published figures
and tests each bring their own rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Grid(NamedTuple):
    """A configuration D×P, light enough for millions of them."""

    data: int
    pipeline: int

    @property
    def workers(self) -> int:
        """Cells."""
        return self.data * self.pipeline

    def __str__(self) -> str:
        return f"{self.data}x{self.pipeline}"


NOTHING = Grid(0, 0)
"""No instance holds anything."""


class Rules(Protocol):
    """Speeds and costs. Pure: the same question gets the same answer, so answers may be kept."""

    def grids(self, instances: int) -> Sequence[Grid]:
        """Every layout that so many instances can run, in a fixed order; NOTHING excluded."""
        ...

    def speed(self, grid: Grid) -> float:
        """Samples per second while nothing changes; 0 for NOTHING."""
        ...

    def change_seconds(
        self, instances: int, before: Grid, removed: int, after: Sequence[Grid]
    ) -> Floats:
        """Expected pause of going from ``before`` to each of ``after``.

        Args:
            instances: How many there were before; ``before``'s cells first, then spares.
            before: The layout until now.
            removed: How many of them vanish, a uniformly random subset.
            after: The layouts to go to.

        Returns:
            [len(after)] seconds without training, averaged over who vanishes.
        """
        ...

    def overlap_seconds(self, after: Grid) -> float:
        """Added to the pause of a change that starts before the last one's has ended."""
        ...
