"""What ``parcae local`` was asked to do, checked once."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from parcae_api.errors import InputError
from parcae_api.job import ParcaeJob, Reduction, load_job
from parcae_traces import Trace, cut, find_trace, parse_segment, scale

MARKER = ".parcae-run"
"""Says that a folder is a run's: only such a folder is ever emptied."""


@dataclass(frozen=True)
class LocalOptions:
    """Raw options of the command."""

    manifest: Path
    trace: str | None
    segment: str | None
    speedup: float
    out: Path
    verify: bool
    unnoticed: float
    seed: int
    reduction: Reduction | None


@dataclass(frozen=True)
class LocalRunPlan:
    """Checked options."""

    job: ParcaeJob
    search_path: str
    trace: Trace | None
    speedup: float
    out: Path
    verify: bool
    unnoticed: float
    seed: int


def check(options: LocalOptions) -> LocalRunPlan:
    """Check everything that can be checked before a process is started.

    Raises:
        InputError: an option, the manifest, the trace or the output folder cannot work.
    """
    if not (math.isfinite(options.speedup) and options.speedup > 0):
        raise InputError(f"--speedup: is {options.speedup:g}; give a number above 0, like 30")
    if not 0 <= options.unnoticed <= 1:
        raise InputError(f"--unnoticed: is {options.unnoticed:g}; give a share from 0 to 1")
    job = load_job(options.manifest)
    if options.reduction is not None:
        spec = job.spec.model_copy(update={"reduction": options.reduction})
        job = job.model_copy(update={"spec": spec})
    trace = _trace(options, job)
    _prepare_folder(options.out)
    return LocalRunPlan(
        job=job,
        search_path=str(options.manifest.resolve().parent),
        trace=trace,
        speedup=options.speedup,
        out=options.out.resolve(),
        verify=options.verify,
        unnoticed=options.unnoticed,
        seed=options.seed,
    )


def _trace(options: LocalOptions, job: ParcaeJob) -> Trace | None:
    if options.trace is None:
        if options.segment is not None:
            raise InputError("--segment: needs a --trace to cut")
        return None
    trace = find_trace(options.trace)
    if options.segment is not None:
        trace = cut(trace, parse_segment(options.segment))
    if trace.peak() == 0:
        raise InputError(f"--trace: {trace.name} never has an instance; choose another")
    if trace.capacity > job.spec.instances.max:
        trace = scale(trace, job.spec.instances.max, options.seed)
    return trace


def _prepare_folder(out: Path) -> None:
    """Make the folder, or empty an earlier run's; never touch anything else."""
    try:
        if out.exists() and not out.is_dir():
            raise InputError(f"--out: {out} is a file; name a folder")
        if out.is_dir() and any(out.iterdir()):
            if not (out / MARKER).exists():
                raise InputError(
                    f"--out: {out} holds files that are no earlier run's; name an empty folder"
                )
            for entry in out.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry)
                elif entry.name != MARKER:
                    entry.unlink()
        out.mkdir(parents=True, exist_ok=True)
        (out / MARKER).write_text("made by parcae local; emptied by the next run\n")
    except OSError as error:
        detail = error.strerror or os.strerror(error.errno or 0)
        raise InputError(
            f"--out: {out} cannot be written: {detail}; name another folder"
        ) from error
