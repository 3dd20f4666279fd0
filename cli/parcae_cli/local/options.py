"""What ``parcae local`` was asked to do, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from parcae_api.errors import InputError
from parcae_api.job import ParcaeJob, Reduction, load_job
from parcae_cli.local.folder import RunFolder
from parcae_traces import Trace, cut, find_trace, parse_segment, scale
from parcae_traces.series import INTERVAL_S


class PlannerKind(StrEnum):
    """What chooses layouts."""

    LIVEPUT = "liveput"
    """What is expected to train the most under a forecast."""
    REACTIVE = "reactive"
    """What is fastest on the instances that are there."""


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
    planner: PlannerKind = PlannerKind.LIVEPUT
    metrics: bool = False


@dataclass(frozen=True)
class LocalRunPlan:
    """Checked options."""

    job: ParcaeJob
    search_path: str
    trace: Trace | None
    speedup: float
    folder: RunFolder
    """Taken: enter it, so that it is given back."""
    verify: bool
    unnoticed: float
    seed: int
    planner: PlannerKind
    metrics: bool
    """Whether agents answer Prometheus, each on a port of its own."""

    @property
    def interval_s(self) -> float | None:
        """The planning interval on this machine's clock; None where nothing is forecast."""
        if self.planner is PlannerKind.REACTIVE:
            return None
        return INTERVAL_S / self.speedup if self.trace else INTERVAL_S

    @property
    def out(self) -> Path:
        """Where the records go."""
        return self.folder.path

    @property
    def checkpoints(self) -> Path:
        """The run's own: those of an earlier run would make this one begin in the middle."""
        return self.out / "checkpoints"


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
    if job.spec.suspend:
        raise InputError("spec.suspend: is true, so that nothing would ever run; remove it")
    if options.reduction is not None:
        spec = job.spec.model_copy(update={"reduction": options.reduction})
        job = job.model_copy(update={"spec": spec})
    trace = _trace(options, job)
    folder = RunFolder.take(options.out)
    return LocalRunPlan(
        job=job,
        search_path=str(options.manifest.resolve().parent),
        trace=trace,
        speedup=options.speedup,
        folder=folder,
        verify=options.verify,
        unnoticed=options.unnoticed,
        seed=options.seed,
        planner=options.planner,
        metrics=options.metrics,
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
