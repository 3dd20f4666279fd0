"""Predictors by name."""

from __future__ import annotations

from collections.abc import Callable

from parcae_api.errors import InputError
from parcae_predictor.arima import ArimaPredictor
from parcae_predictor.forecast import Predictor
from parcae_predictor.hazard import HazardPredictor
from parcae_predictor.oracle import OraclePredictor
from parcae_predictor.persistence import PersistencePredictor
from parcae_predictor.window import WindowPredictor
from parcae_traces.series import Series

DEFAULT = HazardPredictor.name

_MAKERS: dict[str, Callable[[], Predictor]] = {
    HazardPredictor.name: HazardPredictor,
    WindowPredictor.name: WindowPredictor,
    ArimaPredictor.name: ArimaPredictor,
    PersistencePredictor.name: PersistencePredictor,
}

NAMES = tuple(_MAKERS)
"""Models that need nothing but a question. The oracle also needs the future."""


def predictor_of(name: str, future: Series | None = None) -> Predictor:
    """The model of a name, with its defaults.

    Args:
        name: One of ``NAMES``, or ``oracle``.
        future: The whole recording, which only the oracle looks at.

    Raises:
        InputError: the name is unknown, or the oracle got no future.
    """
    if name == OraclePredictor.name:
        if future is None:
            raise InputError(
                f"model {name!r} knows the future and so works on recordings only; give one of "
                f"{', '.join(NAMES)}"
            )
        return OraclePredictor(future)
    check_name(name)
    return _MAKERS[name]()


def check_name(name: str) -> None:
    """Refuse an unknown name.

    Raises:
        InputError: there is no such model.
    """
    if name not in _MAKERS and name != OraclePredictor.name:
        raise InputError(
            f"model {name!r} is unknown; give one of {', '.join(NAMES)}, or {OraclePredictor.name}"
        )
