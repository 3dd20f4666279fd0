"""Rows of the benchmark table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    what: str
    measured: str
    target: str
    met: bool | None
    """None where there is no target."""


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float], unit: str = "ms", scale: float = 1e3) -> str:
    low, high = min(values) * scale, max(values) * scale
    return f"{median(values) * scale:.0f} {unit} ({low:.0f}-{high:.0f}, {len(values)} runs)"


def print_table(rows: Sequence[Row]) -> None:
    table = Table(title="measured on this machine, in one run")
    table.add_column("what", overflow="fold", max_width=44)
    table.add_column("measured", overflow="fold", max_width=40)
    table.add_column("target", overflow="fold", max_width=26)
    table.add_column("")
    for row in rows:
        mark = {True: "[green]met[/]", False: "[red]missed[/]", None: ""}[row.met]
        table.add_row(row.what, row.measured, row.target, mark)
    Console(width=130).print(table)
