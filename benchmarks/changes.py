"""Plan changes as a user sees them: a whole local run (etcd, controller, agents) under a script."""

from __future__ import annotations

import io
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml
from rich.console import Console

from benchmarks.model import ARGUMENTS, EXAMPLE
from benchmarks.report import Row, median, spread
from parcae_agent.ledger import read_ledger
from parcae_api.events import AnyEvent, InstanceLost, Migration, MigrationKind
from parcae_api.plan import PlanReason
from parcae_cli.local.interrupts import Interrupts
from parcae_cli.local.options import LocalOptions, check
from parcae_cli.local.run import LocalRun
from parcae_cli.local.summary import recovery_seconds
from parcae_traces import Life, Trace, save_compact
from parcae_traces.model import ordered

ROUNDS = 5
START_S, GAP_S = 8.0, 4.0


@dataclass(frozen=True)
class Recorded:
    """A finished run."""

    events: list[AnyEvent]
    recoveries: list[float]
    lost: int
    repeated: int


def run(raw_bytes_per_s: float) -> list[Row]:
    """The rows of this part.

    Args:
        raw_bytes_per_s: What a plain TCP connection moves on this machine, measured just before.
    """
    recorded = _record(_script())
    migrations = [e for e in recorded.events if isinstance(e, Migration)]
    regroups = [
        m.pause_seconds
        for m in migrations
        if m.reason is PlanReason.NOTICE and m.kind is MigrationKind.INTRA_STAGE
    ]
    joins = [m for m in migrations if m.reason is PlanReason.JOIN and m.bytes_moved]
    beyond = [m.pause_seconds - m.bytes_moved / raw_bytes_per_s for m in joins]
    sound = f"; {recorded.lost} samples lost, {recorded.repeated} repeated"
    return [
        Row(
            "re-forming a grid of 4 after a notice, no state moved",
            spread(regroups),
            "<= 0.2 s",
            median(regroups) <= 0.2,
        ),
        Row(
            "SIGKILL of 1 of 4 to the next committed step, less one step",
            spread(recorded.recoveries) + sound,
            "<= 0.5 s",
            median(recorded.recoveries) <= 0.5,
        ),
        Row(
            "the others' pause when a started worker joins, less bytes / raw bandwidth",
            f"{spread(beyond)}; {joins[0].bytes_moved / 1e6:.0f} MB each",
            "<= 0.2 s",
            median(beyond) <= 0.2,
        ),
    ]


def _script() -> Trace:
    """Four instances; then, again and again: one killed, two join, one leaves with notice."""
    lives = [Life(k, 0.0) for k in range(4)]
    alive = [0, 1, 2, 3]
    removed: dict[int, tuple[float, float]] = {}
    now = START_S
    for _ in range(ROUNDS):
        removed[alive.pop(0)] = (now, 0.0)
        for offset in (1, 2):
            number = len(lives)
            lives.append(Life(number, now + offset * GAP_S))
            alive.append(number)
        removed[alive.pop(0)] = (now + 3 * GAP_S, 2.0)
        now += 4 * GAP_S
    return Trace(
        name="bench",
        source="a script of the benchmarks",
        duration_s=now + GAP_S,
        capacity=5,
        lives=ordered(
            Life(x.instance, x.joined_s, *removed.get(x.instance, (None, None))) for x in lives
        ),
    )


def _record(trace: Trace) -> Recorded:
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        path, manifest = Path(folder) / "bench.trace", Path(folder) / "job.yaml"
        save_compact(trace, path)
        shutil.copy(EXAMPLE / "gpt.py", folder)
        manifest.write_text(yaml.safe_dump(_job()), encoding="utf-8")
        plan = check(
            LocalOptions(
                manifest=manifest,
                trace=str(path),
                segment=None,
                speedup=1.0,
                out=Path(folder) / "run",
                verify=False,
                unnoticed=0.0,
                seed=0,
                reduction=None,
            )
        )
        local = LocalRun(plan, Console(file=io.StringIO()), Interrupts())
        try:
            local.train()
        finally:
            local.close()
        ledger = read_ledger(plan.out / "ledger")
        events = local.recorder.events
        assert any(isinstance(e, InstanceLost) and not e.noticed for e in events)
        return Recorded(
            events,
            recovery_seconds(events, ledger.steps),
            ledger.samples_lost,
            ledger.samples_repeated,
        )


# Twenty micro-batches: five workers are better than four, four than three.
_ARGUMENTS = {**ARGUMENTS, "layers": 2, "width": 64, "batch": 40, "micro_batch": 2}


def _job() -> dict[str, object]:
    return {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {"name": "bench"},
        "spec": {
            "instances": {"min": 1, "max": 5},
            "entrypoint": {"function": "gpt:gpt", "args": _ARGUMENTS},
            "pipeline": {"maxStages": 1},
        },
    }
