"""Histories, questions, and the models that answer them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st

from parcae_predictor import (
    ArimaPredictor,
    Forecast,
    HazardPredictor,
    Known,
    OraclePredictor,
    PersistencePredictor,
    Predictor,
    Question,
    WindowPredictor,
)
from parcae_predictor.drift import drift_path
from parcae_traces import Series

QUICK = settings(max_examples=40, deadline=None)
CAPACITY = 16


def series_from(counts: Sequence[int], first_added: int | None = None) -> Series:
    """The series of these counts, with the fewest events that explain them."""
    stock = (counts[0] if first_added is None else first_added,) if counts else ()
    changes = [after - before for before, after in pairwise(counts)]
    return Series(
        60.0,
        tuple(counts),
        (*stock, *(max(change, 0) for change in changes)),
        (*(0 for _ in stock), *(max(-change, 0) for change in changes)),
    )


HISTORIES: dict[str, list[int]] = {
    "empty": [],
    "one point": [7],
    "constant": [CAPACITY] * 40,
    "short": [5, 6, 6, 4],
    "as long as the window": [9] * 6 + [8] * 6,
    "all gone": [CAPACITY] * 20 + [0] * 5,
    "never any": [0] * 30,
    "oscillating": [2, 14] * 30,
    "one by one": [8, 9] * 25,
    "steep": list(range(CAPACITY + 1)) + list(range(CAPACITY, -1, -1)),
    "long": [(i * i // 7) % (CAPACITY + 1) for i in range(10_000)],
    "long and calm": [CAPACITY] * 9_990 + [CAPACITY - 1] * 10,
}

MAKERS: dict[str, Callable[[Series], Predictor]] = {
    "hazard": lambda series: HazardPredictor(),
    "window": lambda series: WindowPredictor(),
    "arima": lambda series: ArimaPredictor(),
    "arima, closed form": lambda series: ArimaPredictor(drift_path),
    "persistence": lambda series: PersistencePredictor(),
    "oracle": OraclePredictor,
}
CHEAP = [name for name in MAKERS if name != "arima"]
"""Those that a hundred questions may be asked of."""


def ask(counts: Sequence[int], **changes: object) -> Question:
    """A question after these counts."""
    fields: dict[str, object] = {
        "series": series_from(counts),
        "now": counts[-1] if counts else CAPACITY // 2,
        "capacity": CAPACITY,
        "num_paths": 60,
    }
    return Question(**{**fields, **changes})  # type: ignore[arg-type]


def assert_legal(forecast: Forecast, question: Question) -> None:
    """Shapes, signs, nobody removed who is not there, never more than the capacity."""
    shape = (question.num_paths, question.horizon)
    assert forecast.removed.shape == forecast.added.shape == shape
    assert (forecast.num_paths, forecast.horizon) == shape
    assert forecast.removed.dtype == forecast.added.dtype == "int64"
    assert forecast.now == question.now
    assert forecast.removed.min() >= 0
    assert forecast.added.min() >= 0
    before = forecast.available + forecast.removed - forecast.added
    assert (forecast.removed <= before).all()
    assert forecast.available.min() >= 0
    assert forecast.available.max() <= question.capacity


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Anything that may be asked."""
    capacity = draw(st.integers(1, 20))
    counts = draw(st.lists(st.integers(0, capacity), max_size=40))
    known = Known(tuple(draw(st.lists(st.integers(0, 6), max_size=15))), draw(st.integers(0, 6)))
    return ask(
        counts,
        capacity=capacity,
        now=draw(st.integers(0, capacity)),
        horizon=draw(st.integers(1, 14)),
        num_paths=draw(st.integers(1, 30)),
        seed=draw(st.integers(0, 5)),
        known=known,
    )
