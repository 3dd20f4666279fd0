"""What a comparison says of each policy: shares, pauses, losses, prices; and its CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from parcae_api.errors import InputError
from parcae_simulator.outcome import Outcome
from parcae_simulator.sweep import Cell


@dataclass(frozen=True)
class Prices:
    """Of one instance for an hour."""

    spot_per_hour: float
    on_demand_per_hour: float

    @property
    def spot_share(self) -> float:
        """Spot over on-demand."""
        return self.spot_per_hour / self.on_demand_per_hour


@dataclass(frozen=True)
class Row:
    """One line of the CSV; None where a figure does not exist."""

    model: str
    trace: str
    segment: str
    rules: str
    policy: str
    timing: str
    notices: str
    store: str
    samples: float
    samples_deviation: float
    """Standard deviation over the draws of who vanishes."""
    draws: int
    tokens: float | None
    share_of_ideal: float | None
    share_of_known: float | None
    paused_s: float
    lost_samples: float
    instance_hours: float
    cost: float
    cost_per_1000_samples: float | None
    note: str


def rows_of(cell: Cell, prices: Prices) -> Iterator[Row]:
    """One row per outcome of a cell."""
    tokens = cell.model.sequence_tokens
    for outcome in cell.outcomes:
        known = _known(cell, outcome)
        price = prices.on_demand_per_hour if outcome.on_demand else prices.spot_per_hour
        hours = outcome.instance_hours(cell.scenario.interval_s)
        samples = outcome.samples
        yield Row(
            model=cell.model.name,
            trace=cell.scenario.trace,
            segment=cell.scenario.segment,
            rules=cell.rules.value,
            policy=outcome.policy,
            timing=outcome.timing,
            notices=outcome.notices,
            store=outcome.store,
            samples=round(samples, 3),
            samples_deviation=round(outcome.samples_deviation, 3),
            draws=outcome.draws,
            tokens=None if tokens is None else round(samples * tokens),
            share_of_ideal=_share(outcome, cell.ideal),
            share_of_known=None if known is None else _share(outcome, known),
            paused_s=round(outcome.paused_s, 3),
            lost_samples=round(outcome.lost_samples, 3),
            instance_hours=round(hours, 4),
            cost=round(hours * price, 4),
            cost_per_1000_samples=round(1000 * hours * price / samples, 6) if samples else None,
            note=outcome.note,
        )


def _known(cell: Cell, outcome: Outcome) -> Outcome | None:
    """The known future under the same notices and store, where the rules tell them apart."""
    found = [other for other in cell.outcomes if other.policy == "known"]
    return max(
        found,
        key=lambda k: (k.notices == outcome.notices, k.store == outcome.store),
        default=None,
    )


def _share(outcome: Outcome, whole: Outcome) -> float | None:
    return round(outcome.samples / whole.samples, 6) if whole.samples else None


def write_csv(rows: Iterable[Row], path: Path) -> None:
    """Write rows, with a heading.

    Raises:
        InputError: the file cannot be written.
    """
    names = [field.name for field in fields(Row)]
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows([getattr(row, name) for name in names] for row in rows)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
