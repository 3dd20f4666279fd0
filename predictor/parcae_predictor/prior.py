"""What other recordings say, for the first hour, in which a history says little.

``prior.json`` ships with the package; :mod:`parcae_predictor.prior_maker` writes it anew from the
bundled recordings. Per recording it holds, for removals and for additions, how many intervals of
each bucket of age had an event and how many could have had one, as shares of all intervals, and the
sizes of the batches as quantiles: removals as shares of the count, additions as shares of the
capacity, so that it serves a fleet of any size. Each recording weighs the same, long or short.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from parcae_predictor.batches import Floats
from parcae_predictor.rates import NUM_BUCKETS, Tallies, Tally

FILE = Path(__file__).with_name("prior.json")
RECORDINGS = ("g4dn", "gcp-v100", "p3")
"""The bundled recordings that are independent of each other; the other bundled ones are parts."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Averages over recordings. Tallies are shares of all intervals: worth one interval."""

    removals: Tallies
    additions: Tallies
    removal_shares: Floats
    """Quantiles of the batches, in shares of the count."""
    addition_shares: Floats
    """Likewise, in shares of the capacity."""


@cache
def load_prior(without: frozenset[str] = frozenset()) -> Prior:
    """The prior from all recordings but those named.

    Args:
        without: Names of recordings to leave out, because the forecast is judged on them.
    """
    table = json.loads(FILE.read_text(encoding="utf-8"))
    return _pooled([entry for name, entry in sorted(table.items()) if name not in without])


def _pooled(entries: Collection[dict[str, Any]]) -> Prior:
    """Average recordings; none at all give a prior that expects nothing."""

    def tallies(kind: str) -> Tallies:
        return Tallies(tally(kind, "since_removal"), tally(kind, "since_addition"))

    def tally(kind: str, age: str) -> Tally:
        none = [0.0] * NUM_BUCKETS
        events = [entry[kind][age]["events"] for entry in entries] or [none]
        exposure = [entry[kind][age]["exposure"] for entry in entries] or [none]
        return Tally(np.mean(events, axis=0), np.mean(exposure, axis=0))

    def shares(kind: str) -> Floats:
        flat = [share for entry in entries for share in entry[kind]["batch_shares"]]
        return np.asarray(flat, dtype=np.float64)

    return Prior(tallies("removals"), tallies("additions"), shares("removals"), shares("additions"))
