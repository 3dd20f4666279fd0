"""Crews of real workers without a board: what needs to be timed inside an epoch."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch

from benchmarks.model import ARGUMENTS, EXAMPLE, LAYERS, MICRO_BATCHES, training
from benchmarks.report import Row, median, spread

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import itertools

from crew import Crew

from parcae_agent.shapes import survey
from parcae_api.job import Entrypoint, Instances, JobSpec, Reduction
from parcae_api.plan import PlanReason

TURNS, STEPS_PER_TURN = 24, 6
NAMES = ("a", "b", "c", "d")


def run() -> list[Row]:
    rows = [_exact_against_fast()]
    with _crew(Reduction.EXACT) as crew:
        rows.append(_memory(crew))
        rows.append(_break(crew))
    return rows


@contextmanager
def _crew(reduction: Reduction) -> Iterator[Crew]:
    spec = JobSpec(
        instances=Instances(max=8),
        entrypoint=Entrypoint(function="gpt:gpt", args=dict(ARGUMENTS)),
        reduction=reduction,
    )
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        crew = Crew(Path(folder), spec, str(EXAMPLE), layers=LAYERS)
        try:
            crew.start(*NAMES)
            yield crew
        finally:
            crew.close()


def _plan(crew: Crew, data: int, pipeline: int, reason: PlanReason = PlanReason.NOTICE) -> None:
    crew.plan(data, pipeline, NAMES, reason=reason, micro_batches=MICRO_BATCHES)


def _exact_against_fast() -> Row:
    """Whole steps of 4x1, the two modes in turn; the other crew sits paused meanwhile."""
    with _crew(Reduction.EXACT) as exact, _crew(Reduction.FAST) as fast:
        for turn in range(TURNS):
            for crew in (exact, fast) if turn % 2 else (fast, exact):
                _plan(crew, 4, 1)
                crew.wait_committed(crew.progress + STEPS_PER_TURN)
                crew.wait_idle(crew.pause(), *NAMES)
        seconds = [_step_seconds(crew) for crew in (exact, fast)]
    turns = sorted(median(e) / median(f) for e, f in zip(*seconds, strict=True))
    ratio = median(turns)
    return Row(
        "`exact` against `fast` reduction, whole step, 4x1",
        f"{ratio:.3f} (middle half of {len(turns)} turns {turns[len(turns) // 4]:.2f}-"
        f"{turns[-1 - len(turns) // 4]:.2f})",
        "<= 1.05",
        ratio <= 1.05,
    )


def _step_seconds(crew: Crew) -> list[list[float]]:
    """How long the steps of every turn took; the first of each formed its epoch."""
    steps = crew.ledger().steps
    found = []
    for revision in sorted({s.revision for s in steps}):
        times = [s.at_unix_s for s in steps if s.revision == revision]
        found.append([b - a for a, b in itertools.pairwise(times)])
    return found


def _memory(crew: Crew) -> Row:
    _plan(crew, 4, 1)
    crew.wait_committed(crew.progress + 5)
    unique = psutil.Process(crew.hands["a"].pid).memory_full_info().uss
    crew.wait_idle(crew.pause(), *NAMES)
    job = training()
    profile = survey(job, 0, torch.zeros(job.micro_batch, 64, dtype=torch.long)).profile
    state = sum(layer.state_bytes for layer in profile.layers)
    gradients = sum(layer.param_bytes for layer in profile.layers)
    return Row(
        "a worker's own memory beyond parameters, optimizer state and a gradient",
        f"{(unique - state - gradients) / 1e6:.0f} MB (of {unique / 1e6:.0f} MB not shared; "
        "activations and the summation tree included)",
        "reported",
        None,
    )


def _break(crew: Crew) -> Row:
    """A worker stands still in mid-step; a plan without it must free the other three."""
    times = []
    for _ in range(5):
        _plan(crew, 4, 1)
        crew.wait_committed(crew.progress + 2)
        crew.stop("d")
        revision = crew.revision
        _until_blocked(crew)
        started = time.perf_counter()
        crew.plan(3, 1, NAMES[:3], reason=PlanReason.LOSS, micro_batches=MICRO_BATCHES)
        crew.wait_broken(revision, *NAMES[:3])
        times.append(time.perf_counter() - started)
        crew.wait_committed(crew.progress + 1)
        crew.wake("d")
    return Row(
        "survivors out of a collective whose peer stands still",
        spread(times),
        "<= 0.1 s",
        median(times) <= 0.1,
    )


def _until_blocked(crew: Crew) -> None:
    """Until the other three use the processor no more: all wait for the fourth."""
    processes = [psutil.Process(crew.hands[n].pid) for n in NAMES[:3]]
    before = -1.0
    while True:
        used = sum(sum(p.cpu_times()[:2]) for p in processes)
        if used == before:
            return
        before = used
        time.sleep(0.1)
