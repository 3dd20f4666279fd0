"""``parcae ledger``: print and check a run's sample ledger."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from parcae_agent.ledger import CommittedStep, Ledger, read_ledger


def show_ledger(run: Path, console: Console) -> int:
    """Print the ledger epoch by epoch and what is wrong with it; 0 when nothing is, else 1.

    Raises:
        InputError: the folder holds no ledger, or a line is damaged.
    """
    ledger = read_ledger(run / "ledger")
    console.print(_epochs(ledger))
    console.print(
        f"{len(ledger.steps)} steps, {ledger.samples_committed} samples committed, "
        f"{ledger.samples_lost} lost, {ledger.samples_repeated} repeated",
        highlight=False,
    )
    for problem in ledger.problems:
        console.print(problem, style="red", highlight=False)
    return 0 if ledger.is_sound else 1


def _epochs(ledger: Ledger) -> Table:
    table = Table(box=None, padding=(0, 2))
    for name in ("revision", "layout", "steps", "first loss", "last loss"):
        table.add_column(name, justify="right")
    runs: list[list[CommittedStep]] = []
    for step in ledger.steps:
        if runs and runs[-1][0].revision == step.revision:
            runs[-1].append(step)
        else:
            runs.append([step])
    for steps in runs:
        first, last = steps[0], steps[-1]
        table.add_row(
            str(first.revision),
            first.configuration,
            f"{first.step}-{last.step}",
            _loss(first),
            _loss(last),
        )
    return table


def _loss(step: CommittedStep) -> str:
    return "-" if step.loss is None else f"{step.loss:.4f}"
