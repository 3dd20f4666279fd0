"""Writes ``prior.json`` from the bundled recordings: ``python -m parcae_predictor.prior_maker``."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from parcae_predictor.batches import Floats
from parcae_predictor.prior import FILE, RECORDINGS
from parcae_predictor.rates import Tallies, look, rows_of
from parcae_traces.library import find_trace
from parcae_traces.model import Trace
from parcae_traces.series import series_of

NUM_QUANTILES = 16


def written() -> str:
    """The file's text, from the bundled recordings."""
    table = {name: _entry(find_trace(name)) for name in RECORDINGS}
    return json.dumps(table, indent=1) + "\n"


def _entry(trace: Trace) -> dict[str, Any]:
    series = series_of(trace)
    rows = rows_of(series, len(series))
    seen = look(rows, trace.capacity, math.inf)
    struck = rows.removed > 0
    middles = (np.arange(NUM_QUANTILES) + 0.5) / NUM_QUANTILES
    gone = np.quantile(rows.removed[struck] / rows.before[struck], middles)
    come = seen.addition_batches.law().at(middles) / trace.capacity
    return {
        "removals": _shares(seen.removals, len(rows)) | {"batch_shares": _rounded(gone, 4)},
        "additions": _shares(seen.additions, len(rows)) | {"batch_shares": _rounded(come, 4)},
    }


def _shares(tallies: Tallies, length: int) -> dict[str, Any]:
    return {
        age: {
            "events": _rounded(tally.events / length, 6),
            "exposure": _rounded(tally.exposure / length, 6),
        }
        for age, tally in (
            ("since_removal", tallies.since_removal),
            ("since_addition", tallies.since_addition),
        )
    }


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in np.minimum(values, 1.0)]


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
    print(f"{FILE}: written from {', '.join(RECORDINGS)}")
