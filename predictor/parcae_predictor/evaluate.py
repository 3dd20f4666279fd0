"""How good a forecast is: asked at every interval of a recording, judged by what then came.

Rolling origin: at each interval from the 12th on, the model is asked with what was seen until then
and nothing else. The prior that the hazard model starts from leaves out the recording it is judged
on (:func:`kin_of`), so that nothing of the future slips in by that way either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parcae_api.errors import InputError
from parcae_api.job import HORIZON
from parcae_predictor.arima import ArimaPredictor
from parcae_predictor.drift import drift_path
from parcae_predictor.forecast import Counts, Predictor, Question
from parcae_predictor.hazard import HazardPredictor
from parcae_predictor.oracle import OraclePredictor
from parcae_predictor.prior import RECORDINGS, load_prior
from parcae_predictor.registry import predictor_of
from parcae_predictor.scores import covered, crps
from parcae_predictor.window import LONGEST_MEMORY
from parcae_traces.library import find_trace
from parcae_traces.model import Trace
from parcae_traces.series import Series, series_of

HISTORY = 12
"""Intervals seen before the first forecast."""
BAND = 0.8
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over all origins and all intervals ahead; in instances but ``coverage``."""

    model: str
    trace: str
    num_origins: int
    mae_mean: float
    """Absolute error of the mean of the paths."""
    mae_median: float
    crps_count: float
    crps_removals: float
    """Of the cumulative removals since the origin."""
    coverage: float
    """Share of counts within the central 80 % band of the paths."""
    still_count: float
    """``crps_count`` of persistence on the same origins; its MAE as well."""
    still_removals: float

    @property
    def count_ratio(self) -> float:
        """CRPS of the count over persistence's; infinite where persistence alone does not err."""
        return _ratio(self.crps_count, self.still_count)

    @property
    def removals_ratio(self) -> float:
        """CRPS of the cumulative removals over persistence's."""
        return _ratio(self.crps_removals, self.still_removals)


def evaluate(
    predictor: Predictor,
    series: Series,
    capacity: int,
    *,
    trace: str = "",
    history: int = HISTORY,
    horizon: int = HORIZON,
    stride: int = 1,
    num_paths: int = 200,
) -> Scores:
    """Judge a model on one recording.

    Args:
        predictor: The model.
        series: The recording, counted.
        capacity: Instances that were asked for.
        trace: Its name, for the result.
        history: Intervals before the first origin.
        horizon: Intervals that each forecast looks ahead.
        stride: Every how many-th interval is an origin.
        num_paths: Paths per forecast.

    Raises:
        InputError: the recording is too short for a single origin.
    """
    origins = range(history, len(series) - horizon + 1, stride)
    if not origins:
        raise InputError(
            f"trace {trace!r} has {len(series)} intervals; to judge a forecast it needs at least "
            f"{history + horizon}"
        )
    available = np.asarray(series.available, dtype=np.int64)
    removed = np.asarray(series.removed, dtype=np.int64)
    # The oracle tells the time by the length of the history; the others forget after a day.
    memory = len(series) if predictor.name == OraclePredictor.name else LONGEST_MEMORY + 1
    total = np.zeros(7)
    for origin in origins:
        question = Question(
            series=series.window(max(origin - memory, 0), origin),
            now=series.available[origin - 1],
            capacity=capacity,
            horizon=horizon,
            num_paths=num_paths,
            seed=origin,
        )
        ahead = slice(origin, origin + horizon)
        total += _judged(predictor, question, available[ahead], np.cumsum(removed[ahead]))
    return Scores(predictor.name, trace, len(origins), *(total / len(origins)).tolist())


def judged_predictor(name: str, trace: Trace) -> Predictor:
    """The model of a name, its prior without the recordings that the trace is akin to.

    Raises:
        InputError: the name is unknown.
    """
    if name == HazardPredictor.name:
        return HazardPredictor(load_prior(kin_of(trace)))
    if name == ArimaPredictor.name:
        # The same rounded paths as statsmodels at a fraction of the time.
        return ArimaPredictor(drift_path)
    return predictor_of(name, series_of(trace))


def kin_of(trace: Trace) -> frozenset[str]:
    """The recordings of the prior that a trace is, or is a part of.

    A part cut or scaled by this project tells so in its source; a copy from elsewhere, or a part of
    one, is told by its intervals.
    """
    row = _changes(series_of(trace))
    found = set()
    for name in RECORDINGS:
        recording = find_trace(name)
        derived = trace.source.startswith(recording.source)
        if derived or _contains(_changes(series_of(recording)), row):
            found.add(name)
    return frozenset(found)


def geometric_mean(ratios: Iterable[float]) -> float:
    """Of ratios, floored a hair above 0; 1 of none."""
    logs = [math.log(max(ratio, _TINY)) for ratio in ratios]
    return math.exp(math.fsum(logs) / len(logs)) if logs else 1.0


def independent(traces: Sequence[Trace]) -> tuple[str, ...]:
    """Names of those that do not share a recording with a longer one: a mean counts only them."""
    longest: dict[object, Trace] = {}
    for trace in traces:
        family: object = kin_of(trace) or trace.name
        if family not in longest or trace.duration_s > longest[family].duration_s:
            longest[family] = trace
    return tuple(trace.name for trace in longest.values())


def _judged(
    predictor: Predictor, question: Question, counts: Counts, removals: Counts
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """In the order of the fields of :class:`Scores`."""
    forecast = predictor.forecast(question)
    paths = forecast.available
    return np.array(
        [
            np.abs(paths.mean(axis=0) - counts).mean(),
            np.abs(np.median(paths, axis=0) - counts).mean(),
            crps(paths, counts).mean(),
            crps(np.cumsum(forecast.removed, axis=1), removals).mean(),
            covered(paths, counts, BAND).mean(),
            np.abs(counts - question.now).mean(),
            removals.mean(),
        ]
    )


def _changes(series: Series) -> Counts:
    """[intervals, 2], without the first, whose additions are the stock."""
    return np.stack([series.added[1:], series.removed[1:]], axis=1).astype(np.int64)


def _contains(whole: Counts, part: Counts) -> bool:
    """Whether one row of changes holds the other one. A row without any tells nothing."""
    if not part.any() or len(part) > len(whole):
        return False
    starts = range(len(whole) - len(part) + 1)
    return any(np.array_equal(whole[start : start + len(part)], part) for start in starts)


def _ratio(score: float, still: float) -> float:
    if still > 0:
        return score / still
    return 1.0 if score <= _TINY else math.inf
