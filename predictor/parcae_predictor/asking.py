"""Questions that no predictor can answer are refused here, in one sentence each."""

from __future__ import annotations

import numpy as np

from parcae_api.errors import InputError
from parcae_predictor.forecast import Counts, Question
from parcae_traces.model import MOST_INSTANCES
from parcae_traces.series import Series

MOST_INTERVALS_AHEAD = 720
MOST_PATHS = 100_000
MOST_DRAWS = 2_000_000
"""Paths times intervals: bounds the memory of one answer to some 100 MB."""


def check_question(question: Question) -> None:
    """Refuse what contradicts itself or would fill the memory.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    _within("horizon", question.horizon, 1, MOST_INTERVALS_AHEAD)
    _within("num_paths", question.num_paths, 1, MOST_PATHS)
    if question.horizon * question.num_paths > MOST_DRAWS:
        raise InputError(
            f"num_paths: {question.num_paths} paths of {question.horizon} intervals are more than "
            f"{MOST_DRAWS} draws; ask for fewer"
        )
    _within("capacity", question.capacity, 1, MOST_INSTANCES)
    _within("now", question.now, 0, question.capacity)
    _within("seed", question.seed, 0, 2**63 - 1)
    _within("known.likely_removals", question.known.likely_removals, 0, MOST_INSTANCES)
    for interval, removals in enumerate(question.known.removals):
        _within(f"known.removals[{interval}]", removals, 0, MOST_INSTANCES)
    check_series(question.series)


def check_series(series: Series) -> None:
    """Refuse rows of unequal length, negative numbers and counts that do not add up.

    Raises:
        InputError: names the field, its value and the remedy.
    """
    length = len(series.available)
    if not len(series.added) == len(series.removed) == length:
        raise InputError(
            f"series: {length} counts, {len(series.added)} additions and {len(series.removed)} "
            "removals; give one of each per interval"
        )
    rows = [_row(name, getattr(series, name)) for name in ("available", "added", "removed")]
    available, added, removed = rows
    follows = available[:-1] + added[1:] - removed[1:]
    if (wrong := np.flatnonzero(follows != available[1:])).size:
        interval = int(wrong[0]) + 1
        raise InputError(
            f"series.available[{interval}]: {available[interval]} does not follow from "
            f"{available[interval - 1]} with {added[interval]} added and {removed[interval]} "
            f"removed; give {follows[interval - 1]}"
        )


def _row(name: str, values: tuple[int, ...]) -> Counts:
    try:
        row: Counts = np.asarray(values, dtype=np.int64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"series.{name}: {error}; give whole numbers") from error
    if (wrong := np.flatnonzero((row < 0) | (row > MOST_INSTANCES))).size:
        _within(f"series.{name}[{wrong[0]}]", int(row[wrong[0]]), 0, MOST_INSTANCES)
    return row


def _within(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{field}: {value} is out of range; give {least} to {most}")
