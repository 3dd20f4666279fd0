"""How the records answer one query, and how far apart the two may be. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .compare import NOW, Expect, Lag, Records

__all__ = ["Expectation", "Records"]


@dataclass(frozen=True)
class Expectation:
    """What a query should answer.

    Args:
        expect: what the records say of a moment.
        source: which records.
        lag: how far a scrape may be from them.
        note: what else there is to say of the comparison.
        without_operator: whether it is told while no operator is there.
    """

    expect: Expect
    source: str
    lag: Lag = NOW
    note: str = ""
    without_operator: bool = False
