"""``summary.json`` and ``steps.csv``: what a run did, from its records and its ledger."""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parcae_agent.ledger import CommittedStep, Ledger
from parcae_api.events import (
    AnyEvent,
    InstanceLost,
    Migration,
    MigrationKind,
    Planned,
    RolledBack,
)
from parcae_cli.local.recorder import Recorder


@dataclass(frozen=True)
class Verification:
    """How the run compares with an undisturbed one."""

    bit_identical: bool
    losses_differing: int
    max_loss_difference: float
    final_loss: float
    state_matches: bool
    seconds: float


@dataclass(frozen=True)
class Digests:
    """SHA-256 of the final parameters, and of parameters with optimizer state."""

    model: str
    state: str


def summarize(
    recorder: Recorder,
    ledger: Ledger,
    *,
    outcome: str,
    digests: Digests | None,
    verification: Verification | None,
) -> dict[str, Any]:
    """Everything ``summary.json`` holds."""
    events = recorder.events
    migrations = [e for e in events if isinstance(e, Migration)]
    lost = [e for e in events if isinstance(e, InstanceLost)]
    steps = ledger.steps
    recoveries = recovery_seconds(events, steps)
    return {
        "outcome": outcome,
        "steps_committed": len(steps),
        "samples_committed": ledger.samples_committed,
        "samples_lost": ledger.samples_lost,
        "samples_repeated": ledger.samples_repeated,
        "steps_replayed": sum(m.steps_replayed for m in migrations),
        "rollbacks": sum(isinstance(e, RolledBack) and e.to_step < e.from_step for e in events),
        "restores": sum(isinstance(e, RolledBack) and e.to_step == e.from_step for e in events),
        "plan_changes": max(0, sum(isinstance(e, Planned) for e in events) - 1),
        "preemptions": {
            "noticed": sum(e.noticed for e in lost),
            "sudden": sum(not e.noticed for e in lost),
        },
        "migrations": {
            kind.value: _migrations([m for m in migrations if m.kind is kind])
            for kind in MigrationKind
        },
        "recovery_seconds": {"count": len(recoveries), **_spread(recoveries)},
        "samples_per_second": _speed(steps, ledger.samples_committed),
        "train_seconds": round(_span(steps), 3),
        "first_loss": _first(s.loss for s in steps if s.loss is not None),
        "final_loss": _first(s.loss for s in reversed(steps) if s.loss is not None),
        "bit_identical": verification.bit_identical if verification else None,
        "verification": vars(verification) if verification else None,
        "model_sha256": digests.model if digests else None,
        "state_sha256": digests.state if digests else None,
        "ledger_problems": ledger.problems,
    }


def recovery_seconds(events: Sequence[AnyEvent], steps: Sequence[CommittedStep]) -> list[float]:
    """For each sudden change: from its loss to the next committed step, less one step time.

    A change has a loss of its own if an instance was lost without notice since the last change;
    a revision that broke without one (or a noticed instance that was not off in time) has none.
    Training goes on when a standby is lost: the members had at most one step in hand.
    """
    found = []
    lost_s: list[float] = []
    for event in events:
        if isinstance(event, InstanceLost) and not event.noticed:
            lost_s.append(event.at_unix_s)
        elif isinstance(event, Migration):
            before = [s.at_unix_s for s in steps if s.revision < event.revision]
            after = [s for s in steps if s.revision >= event.revision]
            felt_s = [at for at in lost_s if sum(step > at for step in before) <= 1]
            if event.sudden and felt_s and after:
                usual = _usual_step_seconds(steps, after[0].revision)
                found.append(max(0.0, after[0].at_unix_s - felt_s[0] - usual))
            lost_s.clear()
    return found


def _usual_step_seconds(steps: Sequence[CommittedStep], revision: int) -> float:
    """Median time of a step in that revision; where it has but one, over the whole run."""

    def gaps(chosen: Sequence[CommittedStep]) -> list[float]:
        return sorted(b.at_unix_s - a.at_unix_s for a, b in itertools.pairwise(chosen))

    within = gaps([step for step in steps if step.revision == revision]) or gaps(steps)
    return within[len(within) // 2] if within else 0.0


def write_summary(path: Path, summary: dict[str, Any]) -> None:
    """Write ``summary.json``."""
    path.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")


def write_steps(path: Path, steps: Sequence[CommittedStep], started: float, batch: int) -> None:
    """Write ``steps.csv``: one row per committed step.

    Args:
        path: The file.
        steps: The true history.
        started: When the run started, unix seconds.
        batch: Samples per step.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(
            ["step", "seconds", "revision", "configuration", "loss", "samples_per_second"]
        )
        before: float | None = None
        for step in steps:
            speed = ""
            if before is not None and step.at_unix_s > before:
                speed = f"{batch / (step.at_unix_s - before):.2f}"
            before = step.at_unix_s
            loss = "" if step.loss is None else repr(step.loss)
            seconds = f"{step.at_unix_s - started:.4f}"
            rows.writerow([step.step, seconds, step.revision, step.configuration, loss, speed])


def _migrations(migrations: Sequence[Migration]) -> dict[str, Any]:
    return {
        "count": len(migrations),
        "bytes": sum(m.bytes_moved for m in migrations),
        "pause_seconds": _spread([m.pause_seconds for m in migrations]),
    }


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    ordered = sorted(values)

    def rank(share: float) -> float | None:
        """The smallest value that at least this share of the values does not exceed."""
        if not ordered:
            return None
        return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 4)

    return {"p50": rank(0.5), "p95": rank(0.95), "max": rank(1.0)}


def _span(steps: Sequence[CommittedStep]) -> float:
    return steps[-1].at_unix_s - steps[0].at_unix_s if len(steps) > 1 else 0.0


def _speed(steps: Sequence[CommittedStep], samples: int) -> float | None:
    """From the first commit to the last; None for fewer than two steps."""
    span = _span(steps)
    if not span:
        return None
    return round(samples * (len(steps) - 1) / len(steps) / span, 2)


def _first(values: Any) -> float | None:
    return next(iter(values), None)
