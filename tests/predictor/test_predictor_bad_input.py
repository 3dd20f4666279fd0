"""Questions that contradict themselves are refused by every model, in one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from predictor_helpers import MAKERS, ask

from parcae_api.errors import InputError
from parcae_predictor import HazardPredictor, Known, OraclePredictor, check_question
from parcae_traces import Series

SERIES = Series(60.0, (5, 5, 4), (5, 0, 0), (0, 0, 1))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"horizon": 0}, r"horizon: 0 is out of range; give 1 to 720"),
        ({"horizon": 10**9}, r"horizon: 1000000000 is out of range"),
        ({"num_paths": 0}, r"num_paths: 0 is out of range"),
        (
            {"num_paths": 100_000, "horizon": 100},
            r"num_paths: 100000 paths of 100 intervals .* few",
        ),
        ({"capacity": 0}, r"capacity: 0 is out of range"),
        ({"capacity": 10**6}, r"capacity: 1000000 is out of range; give 1 to 99999"),
        ({"now": -1}, r"now: -1 is out of range; give 0 to 16"),
        ({"now": 17}, r"now: 17 is out of range; give 0 to 16"),
        ({"seed": -1}, r"seed: -1 is out of range"),
        ({"known": Known((0, -2))}, r"known.removals\[1\]: -2 is out of range"),
        ({"known": Known((), -1)}, r"known.likely_removals: -1 is out of range"),
        (
            {"series": replace(SERIES, added=(5, 0))},
            r"series: 3 counts, 2 additions and 3 removals; give one of each per interval",
        ),
        (
            {"series": replace(SERIES, removed=(0, -1, 1))},
            r"series.removed\[1\]: -1 is out of range; give 0 to 99999",
        ),
        (
            {"series": replace(SERIES, available=(5, 6, 4))},
            r"series.available\[1\]: 6 does not follow from 5 with 0 added and 0 removed; give 5",
        ),
        ({"series": replace(SERIES, available=(5, 5, None))}, r"series.available: .*whole numbers"),
        (
            {"series": replace(SERIES, available=(5, 5, float("nan")))},
            r"series.available: .*whole numbers",
        ),
    ],
)
@pytest.mark.parametrize("model", MAKERS)
def test_a_wrong_question_is_refused(model: str, changes: dict[str, Any], complaint: str) -> None:
    predictor = MAKERS[model](SERIES)
    question = ask([5, 5, 4], **changes)
    with pytest.raises(InputError, match=complaint) as caught:
        predictor.forecast(question)
    assert "\n" not in str(caught.value)


def test_the_hazard_law_checks_as_well() -> None:
    with pytest.raises(InputError, match="horizon: 0"):
        HazardPredictor().law(ask([3], horizon=0))


def test_a_wrong_recording_is_no_oracle() -> None:
    with pytest.raises(InputError, match=r"series.available\[1\]"):
        OraclePredictor(replace(SERIES, available=(5, 6, 4)))


def test_a_good_question_passes() -> None:
    check_question(ask([]))
    check_question(ask([5, 5, 4], known=Known((1, 0), 2)))
