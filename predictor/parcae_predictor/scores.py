"""Scores of one forecast against what came. Lower is better; all are in instances but coverage."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def crps(samples: NDArray[np.int64], truth: NDArray[np.int64]) -> Floats:
    """Continuous ranked probability score per interval: E|X - y| - E|X - X'| / 2.

    X and X' are independent draws from the samples (with themselves, so that few paths are not
    flattered). For a single-valued forecast this is its absolute error.

    Args:
        samples: [paths, horizon].
        truth: [horizon].
    """
    paths = samples.shape[0]
    ordered = np.sort(samples, axis=0)
    ranks = (2 * np.arange(1, paths + 1) - paths - 1)[:, np.newaxis]
    spread = (ranks * ordered).sum(axis=0) / paths**2
    return np.asarray(np.abs(samples - truth).mean(axis=0) - spread, dtype=np.float64)


def covered(
    samples: NDArray[np.int64], truth: NDArray[np.int64], share: float = 0.8
) -> NDArray[np.bool_]:
    """[horizon]: whether the truth lies in the central band that holds ``share`` of the paths."""
    low, high = np.quantile(samples, ((1 - share) / 2, (1 + share) / 2), axis=0)
    return np.asarray((low <= truth) & (truth <= high), dtype=np.bool_)
