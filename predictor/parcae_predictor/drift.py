"""ARIMA(1,1,0) with drift by Gaussian maximum likelihood: the point path of the Parcae paper.

The differences z of the counts follow z_t - μ = φ (z_{t-1} - μ) + noise, the first one drawn from
the stationary law. Two ways to the same path: a closed form in all but φ, and statsmodels.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from parcae_predictor.batches import Floats

_COARSE = np.linspace(-0.9995, 0.9995, 400)
_FINE_ROUNDS = 4
_FINE_POINTS = 41


def drift_path(counts: Floats, steps: int) -> Floats:
    """Forecast by the likelihood with μ at its optimum given φ, and φ searched on a line.

    Maximises -(n/2) ln(S/n) + ½ ln(1-φ²) over |φ| < 1, where n is the number of differences and
    S = (1-φ²)(z₁-μ)² + Σ (z_t - μ - φ(z_{t-1} - μ))².

    Args:
        counts: [at least 3]; constant ones are continued.
        steps: Length of the path.
    """
    differences = np.diff(counts)
    if np.all(differences == differences[0]):
        return np.asarray(counts[-1] + differences[0] * np.arange(1, steps + 1), dtype=np.float64)
    phi, mean = _fit(differences)
    ahead = mean + (differences[-1] - mean) * phi ** np.arange(1, steps + 1)
    return np.asarray(counts[-1] + np.cumsum(ahead), dtype=np.float64)


def statsmodels_path(counts: Floats, steps: int) -> Floats:
    """Forecast through statsmodels, as the paper's code does; the closed form where that fails.

    Its fit takes about 10 ms, and does not always converge: the flag that it leaves is read
    instead of the warning that it prints.
    """
    # Takes a second, which only this model need wait for.
    from statsmodels.tsa.arima.model import ARIMA

    if np.ptp(counts) == 0:
        return np.full(steps, float(counts[-1]))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = ARIMA(counts, order=(1, 1, 0), trend="t").fit()
            path = np.asarray(result.forecast(steps), dtype=np.float64)
            trusted = bool(result.mle_retvals["converged"]) and bool(np.isfinite(path).all())
        except (ValueError, ArithmeticError, np.linalg.LinAlgError):
            trusted = False
    return path if trusted else drift_path(counts, steps)


def _fit(differences: Floats) -> tuple[float, float]:
    """φ and μ of the highest likelihood."""
    candidates = _COARSE
    width = float(_COARSE[1] - _COARSE[0])
    for _ in range(_FINE_ROUNDS):
        best = float(candidates[np.argmax(_profile(differences, candidates)[0])])
        around = np.linspace(best - width, best + width, _FINE_POINTS)
        candidates = np.clip(around, -1 + 1e-9, 1 - 1e-9)
        width = 2 * width / (_FINE_POINTS - 1)
    value, means = _profile(differences, candidates)
    top = int(np.argmax(value))
    return float(candidates[top]), float(means[top])


def _profile(differences: Floats, phi: Floats) -> tuple[Floats, Floats]:
    """Likelihood and best μ for each φ."""
    first, number = differences[0], len(differences)
    quasi = differences[1:, np.newaxis] - phi * differences[:-1, np.newaxis]
    stationary = 1 - phi**2
    mean = (stationary * first + (1 - phi) * quasi.sum(axis=0)) / (
        stationary + (number - 1) * (1 - phi) ** 2
    )
    squares = stationary * (first - mean) ** 2 + ((quasi - (1 - phi) * mean) ** 2).sum(axis=0)
    # Differences that an AR(1) fits without any error would have an infinite likelihood.
    squares = np.maximum(squares, math.ulp(1.0) * number)
    return -number / 2 * np.log(squares / number) + 0.5 * np.log(stationary), mean
