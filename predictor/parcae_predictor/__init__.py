"""Forecasts of spot availability: from what was seen to joint paths of what may come.

The seam is :mod:`parcae_predictor.forecast`; one model a file. Of these only ``arima`` loads
statsmodels, when it first forecasts.
"""

from parcae_api.job import HORIZON
from parcae_predictor.arima import ArimaPredictor
from parcae_predictor.asking import check_question, check_series
from parcae_predictor.evaluate import Scores, evaluate
from parcae_predictor.forecast import (
    NUM_PATHS,
    Counts,
    Forecast,
    Known,
    Predictor,
    Question,
)
from parcae_predictor.hazard import HazardPredictor, HazardSettings, Law
from parcae_predictor.oracle import OraclePredictor
from parcae_predictor.persistence import PersistencePredictor
from parcae_predictor.prior import Prior, load_prior
from parcae_predictor.published import PublishedForecaster
from parcae_predictor.registry import DEFAULT, NAMES, predictor_of
from parcae_predictor.window import WindowPredictor

__all__ = [
    "DEFAULT",
    "HORIZON",
    "NAMES",
    "NUM_PATHS",
    "ArimaPredictor",
    "Counts",
    "Forecast",
    "HazardPredictor",
    "HazardSettings",
    "Known",
    "Law",
    "OraclePredictor",
    "PersistencePredictor",
    "Predictor",
    "Prior",
    "PublishedForecaster",
    "Question",
    "Scores",
    "WindowPredictor",
    "check_question",
    "check_series",
    "evaluate",
    "load_prior",
    "predictor_of",
]
