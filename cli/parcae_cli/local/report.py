"""What a run did, as a table for people."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from parcae_api.job import Reduction
from parcae_cli.local.describe import size

_KINDS = {
    "intra_stage": "regrouped",
    "inter_stage": "stages copied",
    "pipeline": "re-partitioned",
}


def summary_table(summary: dict[str, Any], reduction: Reduction) -> Table:
    """The main numbers of ``summary.json``."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")

    def row(name: str, value: object) -> None:
        table.add_row(name, str(value))

    row("outcome", summary["outcome"])
    if not summary["steps_committed"]:
        return table
    row("steps", _steps(summary))
    row("samples", _samples(summary))
    row("loss", _loss(summary))
    row("preemptions", "{noticed} noticed, {sudden} sudden".format(**summary["preemptions"]))
    row("plan changes", summary["plan_changes"])
    for kind, migrations in summary["migrations"].items():
        if migrations["count"]:
            row(f"  {_KINDS[kind]}", _migrations(migrations))
    if summary["rollbacks"] or summary["restores"]:
        row(
            "checkpoints",
            f"{summary['rollbacks']}× back to, {summary['restores']}× read without loss",
        )
    if summary["recovery_seconds"]["count"]:
        row("recovery", _recovery(summary["recovery_seconds"]))
    row("bit-identical", _identical(summary, reduction))
    return table


def _steps(summary: dict[str, Any]) -> str:
    text = f"{summary['steps_committed']} committed, {summary['steps_replayed']} replayed"
    speed = summary["samples_per_second"]
    return text if speed is None else f"{text}, {speed:.1f} samples/s"


def _samples(summary: dict[str, Any]) -> str:
    return (
        f"{summary['samples_committed']} committed, {summary['samples_lost']} lost, "
        f"{summary['samples_repeated']} repeated"
    )


def _loss(summary: dict[str, Any]) -> str:
    first, final = summary["first_loss"], summary["final_loss"]
    return "-" if first is None else f"{first:.4f} → {final:.4f}"


def _migrations(migrations: dict[str, Any]) -> str:
    pause = migrations["pause_seconds"]
    return (
        f"{migrations['count']}×, {size(migrations['bytes'])} moved, "
        f"pause {_ms(pause['p50'])}, at most {_ms(pause['max'])}"
    )


def _recovery(recovery: dict[str, Any]) -> str:
    return (
        f"{_ms(recovery['p50'])}, at most {_ms(recovery['max'])} from a sudden loss to the next "
        "step"
    )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _identical(summary: dict[str, Any], reduction: Reduction) -> str:
    checked = summary["verification"]
    if checked is None:
        return "not checked"
    if checked["bit_identical"]:
        return f"yes: all losses and the final state ({checked['seconds']:.0f} s to check)"
    expected = "as expected of reduction fast: " if reduction is Reduction.FAST else ""
    final, undisturbed = summary["final_loss"], checked["final_loss"]
    return (
        f"no, {expected}{checked['losses_differing']} losses differ, by up to "
        f"{checked['max_loss_difference']:.1e}; the final loss is {final:.4f}, "
        f"undisturbed {undisturbed:.4f}"
    )
