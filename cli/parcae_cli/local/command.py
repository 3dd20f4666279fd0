"""``parcae local``: run a job on this machine while a recording plays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from parcae_agent.ledger import Ledger, read_ledger
from parcae_api.errors import InputError, ParcaeError
from parcae_cli.local.describe import size
from parcae_cli.local.options import LocalOptions, LocalRunPlan, check
from parcae_cli.local.recorder import Recorder
from parcae_cli.local.run import Ending, LocalRun
from parcae_cli.local.summary import (
    Digests,
    Verification,
    summarize,
    write_steps,
    write_summary,
)
from parcae_cli.local.timeline import draw_timeline
from parcae_cli.local.verify import Question, finalize, verify

EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130


def run_local(options: LocalOptions, console: Console, errors: Console) -> int:
    """Run, write the records, and say how it went.

    Returns:
        The exit code: 0; 1 when the user's code failed, nothing was trained, the final state was
        not saved, a sample was lost or repeated, or the check failed; 130 when interrupted.

    Raises:
        InputError: something that the user gave cannot work.
    """
    plan = check(options)
    run = LocalRun(plan, console)
    try:
        ending = run.train()
    finally:
        run.close()
    if ending.failure is not None:
        _report_failure(ending, errors)
    ledger = _ledger(plan)
    if ledger is None:
        return EXIT_FAILED if ending.failure or not ending.interrupted else EXIT_INTERRUPTED
    digests, verification = _after(plan, ledger, ending, console)
    summary = summarize(
        run.recorder,
        ledger,
        outcome=_outcome(ending),
        digests=digests,
        verification=verification,
    )
    _write(plan, run.recorder, ledger, summary)
    console.print(_table(plan, summary))
    console.print(f"records in {plan.out}", highlight=False, soft_wrap=True)
    return _exit_code(plan, ending, ledger, verification)


def _report_failure(ending: Ending, errors: Console) -> None:
    assert ending.failure is not None
    if ending.failure.traceback:
        errors.print(ending.failure.traceback, markup=False, highlight=False, end="")
    errors.print(f"the job failed: {ending.failure.message}", markup=False, highlight=False)


def _ledger(plan: LocalRunPlan) -> Ledger | None:
    """The checked ledger; None when no worker came as far as its first epoch."""
    try:
        return read_ledger(plan.out / "ledger")
    except InputError:
        return None


def _after(
    plan: LocalRunPlan, ledger: Ledger, ending: Ending, console: Console
) -> tuple[Digests | None, Verification | None]:
    """The final model, and the undisturbed run to compare with."""
    checkpoints = plan.job.spec.checkpoint.path
    question = Question(
        spec=plan.job.spec,
        search_path=plan.search_path,
        losses=tuple(step.loss for step in ledger.steps),
        checkpoints=Path(checkpoints) if checkpoints else plan.out / "checkpoints",
    )
    if not ledger.steps or ending.failure is not None:
        return None, None
    digests = finalize(question, plan.out / "model.safetensors")
    if not plan.verify or ending.interrupted:
        return digests, None
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("the same job undisturbed, in one process", total=len(ledger.steps))
        return digests, verify(question, lambda done, _: bar.update(task, completed=done))


def _outcome(ending: Ending) -> str:
    if ending.failure is not None:
        return f"failed: {ending.failure.message}"
    if ending.interrupted:
        return "interrupted"
    if ending.complete is not None:
        return ending.complete.message
    return "training could not be ended in time; the records may lack its last step"


def _write(plan: LocalRunPlan, recorder: Recorder, ledger: Ledger, summary: dict[str, Any]) -> None:
    batch = ledger.samples_committed // max(1, len(ledger.steps))
    started = recorder.started_unix_s
    last = ledger.steps[-1].at_unix_s if ledger.steps else started
    end_s = max([last - started, *(e.at_unix_s - started for e in recorder.events), 1.0])
    try:
        write_summary(plan.out / "summary.json", summary)
        write_steps(plan.out / "steps.csv", ledger.steps, started, batch)
        draw_timeline(
            plan.out / "timeline.png",
            title=_title(plan, summary),
            started_unix_s=started,
            end_s=end_s,
            counts=recorder.counts,
            events=recorder.events,
            steps=ledger.steps,
            batch=batch,
        )
    except OSError as error:
        raise ParcaeError(f"{plan.out}: cannot be written: {error.strerror}") from error


def _title(plan: LocalRunPlan, summary: dict[str, Any]) -> str:
    name = plan.job.metadata.name
    source = f" through {plan.trace.name} at {plan.speedup:g}×" if plan.trace else ""
    return (
        f"{name}{source}: {summary['steps_committed']} steps, "
        f"{summary['plan_changes']} plan changes, {summary['samples_lost']} samples lost"
    )


def _table(plan: LocalRunPlan, summary: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")

    def row(name: str, value: object) -> None:
        table.add_row(name, str(value))

    row("outcome", summary["outcome"])
    row("steps committed", summary["steps_committed"])
    row("samples", _samples(summary))
    row("loss", _loss(summary))
    row("preemptions", "{noticed} noticed, {sudden} sudden".format(**summary["preemptions"]))
    row("plan changes", summary["plan_changes"])
    for kind, m in summary["migrations"].items():
        if m["count"]:
            row(kind.replace("_", "-"), _migrations(m))
    recovery = summary["recovery_seconds"]
    if recovery["count"]:
        row(
            "recovery",
            f"p50 {recovery['p50']:.2f} s, max {recovery['max']:.2f} s after a sudden loss",
        )
    row("steps replayed", summary["steps_replayed"])
    row("samples/s", summary["samples_per_second"])
    row("bit-identical", _identical(plan, summary))
    return table


def _samples(summary: dict[str, Any]) -> str:
    return (
        f"{summary['samples_committed']} committed, {summary['samples_lost']} lost, "
        f"{summary['samples_repeated']} repeated"
    )


def _loss(summary: dict[str, Any]) -> str:
    first, final = summary["first_loss"], summary["final_loss"]
    return "-" if first is None else f"{first:.4f} to {final:.4f}"


def _migrations(m: dict[str, Any]) -> str:
    pause = m["pause_seconds"]
    return (
        f"{m['count']}, {size(m['bytes'])} moved, "
        f"pause p50 {pause['p50'] * 1000:.0f} ms, max {pause['max'] * 1000:.0f} ms"
    )


def _identical(plan: LocalRunPlan, summary: dict[str, Any]) -> str:
    checked = summary["verification"]
    if checked is None:
        return "not checked"
    if checked["bit_identical"]:
        return f"yes: every loss and the whole final state, checked in {checked['seconds']:.0f} s"
    return (
        f"no: {checked['losses_differing']} losses differ, by at most "
        f"{checked['max_loss_difference']:.2e}; undisturbed final loss {checked['final_loss']:.4f}"
    )


def _exit_code(
    plan: LocalRunPlan, ending: Ending, ledger: Ledger, verification: Verification | None
) -> int:
    if ending.failure is not None or not ledger.is_sound:
        return EXIT_FAILED
    if ending.interrupted:
        return EXIT_INTERRUPTED
    if ending.complete is None or not ending.complete.saved:
        return EXIT_FAILED
    exact = plan.job.spec.reduction == "exact"
    if verification is not None and exact and not verification.bit_identical:
        return EXIT_FAILED
    return EXIT_OK
