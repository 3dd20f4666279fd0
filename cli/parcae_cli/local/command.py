"""``parcae local``: run a job on this machine while a recording plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from parcae_agent.ledger import Ledger, read_ledger
from parcae_api.errors import InputError, ParcaeError
from parcae_api.profile import Profile
from parcae_cli.local.interrupts import Interrupts
from parcae_cli.local.logs import log_to
from parcae_cli.local.options import LocalOptions, LocalRunPlan, check
from parcae_cli.local.recorder import Recorder
from parcae_cli.local.report import summary_table
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
    """Check the options, and run; see ``run_checked``.

    Raises:
        InputError: something that the user gave cannot work.
        ParcaeError: as for ``run_checked``.
    """
    return run_checked(check(options), console, errors)


def run_checked(plan: LocalRunPlan, console: Console, errors: Console) -> int:
    """Run, write the records, and say how it went.

    Returns:
        The exit code: 0; 1 when the user's code failed, nothing was trained, the final state was
        not saved, a sample was lost or repeated, or the check failed; 130 when interrupted.

    Raises:
        InputError: etcd does not start.
        ParcaeError: the records could not be written whole, or the board could not be used.
    """
    with plan.folder, Interrupts() as interrupts, log_to(plan.out / "parcae.log"):
        return _Command(plan, console, errors, interrupts).run()


@dataclass
class _Command:
    """One run of the command, with its options checked."""

    plan: LocalRunPlan
    console: Console
    errors: Console
    interrupts: Interrupts

    def run(self) -> int:
        run = LocalRun(self.plan, self.console, self.interrupts)
        try:
            ending = run.train()
        finally:
            run.close()
        if ending.failure is not None:
            self._report_failure(ending.failure.traceback, ending.failure.message)
        ledger = _ledger(self.plan.out)
        question = _question(self.plan, ledger)
        digests = self._finalize(question, ending)
        # Written before the check, which takes its time and may be interrupted; and after it.
        summary = self._summary(run.recorder, ledger, ending, digests, None)
        self._write(run.recorder, ledger, summary, ending)
        verification = self._verify(question, ending, digests)
        if verification is not None:
            summary = self._summary(run.recorder, ledger, ending, digests, verification)
            _write_all(self.plan.out, {"summary.json": lambda path: write_summary(path, summary)})
        self.console.print(summary_table(summary, self.plan.job.spec.reduction))
        self.console.print(f"records in {self.plan.out}", highlight=False, soft_wrap=True)
        if ending.trouble is not None:
            raise ending.trouble
        return self._exit_code(ending, ledger, digests, verification)

    def _report_failure(self, traceback: str, message: str) -> None:
        if traceback:
            self.errors.print(traceback, markup=False, highlight=False, end="")
        self.errors.print(f"the job failed: {message}", markup=False, highlight=False)

    def _finalize(self, question: Question, ending: Ending) -> Digests | None:
        """Write the final model; None where there is none."""
        if not question.losses or ending.failure is not None or self.interrupts.count > 1:
            return None
        return finalize(question, self.plan.out / "model.safetensors")

    def _verify(
        self, question: Question, ending: Ending, digests: Digests | None
    ) -> Verification | None:
        """Run undisturbed and compare, if that was asked for and is not interrupted."""
        if not self.plan.verify or digests is None or self.interrupts.count:
            return None
        what = "the same job undisturbed, in one process"
        if not self.console.is_terminal:
            self.console.print(f"checking: {what}", highlight=False)
        with Progress(console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=len(question.losses))
            return verify(
                question,
                lambda done, _: bar.update(task, completed=done),
                lambda: self.interrupts.count > 0,
            )

    def _summary(
        self,
        recorder: Recorder,
        ledger: Ledger,
        ending: Ending,
        digests: Digests | None,
        verification: Verification | None,
    ) -> dict[str, Any]:
        return summarize(
            recorder,
            ledger,
            outcome=_outcome(ending, is_saved=digests is not None or not ledger.steps),
            digests=digests,
            verification=verification,
        )

    def _write(
        self, recorder: Recorder, ledger: Ledger, summary: dict[str, Any], ending: Ending
    ) -> None:
        batch = ledger.samples_committed // max(1, len(ledger.steps))
        started = recorder.started_unix_s
        _write_all(
            self.plan.out,
            {
                "summary.json": lambda path: write_summary(path, summary),
                "steps.csv": lambda path: write_steps(path, ledger.steps, started, batch),
                "timeline.png": lambda path: draw_timeline(
                    path,
                    title=_title(self.plan, summary),
                    recorder=recorder,
                    steps=ledger.steps,
                    batch=batch,
                    speedup=self.plan.speedup if self.plan.trace else None,
                ),
                **_profile_file(ending.profile),
            },
        )

    def _exit_code(
        self,
        ending: Ending,
        ledger: Ledger,
        digests: Digests | None,
        verification: Verification | None,
    ) -> int:
        if ending.failure is not None or not ledger.is_sound:
            return EXIT_FAILED
        if self.interrupts.count:
            return EXIT_INTERRUPTED
        if ending.complete is None or digests is None:
            return EXIT_FAILED
        exact = self.plan.job.spec.reduction == "exact"
        if verification is not None and exact and not verification.bit_identical:
            return EXIT_FAILED
        return EXIT_OK


def _profile_file(profile: Profile | None) -> dict[str, Callable[[Path], None]]:
    """What `parcae plan` and `parcae simulate` take."""
    if profile is None:
        return {}

    def write(path: Path) -> None:
        path.write_text(profile.model_dump_json(indent=1) + "\n")

    return {"profile.json": write}


def _ledger(out: Path) -> Ledger:
    """The checked ledger; an empty one when no worker came as far as its first line."""
    folder = out / "ledger"
    if not any(folder.glob("*.jsonl")):
        return Ledger([], 0, 0, 0)
    try:
        return read_ledger(folder)
    except InputError as error:
        raise ParcaeError(str(error)) from error


def _question(plan: LocalRunPlan, ledger: Ledger) -> Question:
    return Question(
        spec=plan.job.spec,
        search_path=plan.search_path,
        losses=tuple(step.loss for step in ledger.steps),
        checkpoints=plan.checkpoints,
    )


def _outcome(ending: Ending, *, is_saved: bool) -> str:
    if ending.failure is not None:
        return f"failed: {ending.failure.message}"
    if ending.trouble is not None:
        return f"ended by an error: {ending.trouble}"
    if ending.interrupted:
        return "interrupted"
    if ending.complete is not None and is_saved:
        return ending.complete.message
    if ending.complete is not None:
        return f"{ending.complete.message}; the last holder of a layer was lost before it was saved"
    return "training could not be ended in time; the records may lack its last step"


def _title(plan: LocalRunPlan, summary: dict[str, Any]) -> str:
    name = plan.job.metadata.name
    source = f" through {plan.trace.name} at {plan.speedup:g}×" if plan.trace else ""
    return (
        f"{name}{source}: {summary['steps_committed']} steps, "
        f"{summary['plan_changes']} plan changes, {summary['samples_lost']} samples lost"
    )


def _write_all(out: Path, writers: dict[str, Callable[[Path], None]]) -> None:
    """Write files, as many as can be.

    Raises:
        ParcaeError: some could not be written; names them.
    """
    missing: dict[str, OSError] = {}
    for name, write in writers.items():
        try:
            write(out / name)
        except OSError as error:
            (out / name).unlink(missing_ok=True)
            missing[name] = error
    if missing:
        reason = next(iter(missing.values())).strerror
        raise ParcaeError(f"{out}: {', '.join(missing)} cannot be written: {reason}")
