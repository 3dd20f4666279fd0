"""When the alerts' expressions should hold, by the run's records, and which alerts should fire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.deploy.install import NAMESPACE as SYSTEM

from .compare import COUNTED, PULSE, Between, Lag, Records
from .expectation import Expectation
from .expected_fleet import Fleet, of
from .expected_job import BOARD, EVENTS, MODELLED, NONE, STATUS, Job, holds, ready
from .journal import Look
from .records import Records as Run
from .records import count, labels

FIRING = frozenset(
    {
        "ParcaeJobFailed",
        "ParcaeJobDegraded",
        "ParcaeCapacityUnderMinimum",
        "ParcaePreemptionsSudden",
        "ParcaeOperatorAbsent",
        "ParcaeBoardUnreachable",
        "ParcaePlannerDown",
        "ParcaeApiServerUnreachable",
    }
)
"""What the run makes fire; all others must be silent throughout."""
FREE = frozenset({"ParcaeLiveputFarUnderIdeal"})
"""Depends on what the predictor makes of three losses in two minutes: its expression is held
against the records, firing or not."""


def expectations(run: Run) -> Mapping[str, Expectation]:
    """By the alert's name."""
    fleet, job = Fleet(run), Job(run)
    rare = Lag(behind_s=8.0, ahead_s=3.0, relative=0.1)
    return {
        "ParcaeJobStalled": Expectation(
            lambda t: _stalled(run, t), STATUS, Lag(behind_s=8.0, ahead_s=8.0)
        ),
        "ParcaeJobFailed": fleet.of_statuses(
            lambda all_: {of(k): 1.0 for k, s in all_.items() if s["phase"] == "Failed"}
        ),
        "ParcaeJobDegraded": fleet.of_statuses(
            lambda all_: {of(k): 1.0 for k, s in all_.items() if holds(s, "Degraded")}
        ),
        "ParcaeLiveputFarUnderIdeal": Expectation(
            lambda t: {of(run.job): Between(0.0, 0.5, optional=True)},
            "none",
            MODELLED,
            "its parts are compared in the panel",
        ),
        "ParcaeCapacityUnderMinimum": fleet.of_look(lambda look: _short(run, look), STATUS),
        "ParcaeReplaysFrequent": Expectation(lambda t: _replays(run, job, t), BOARD, COUNTED),
        "ParcaeNoticesTooLate": Expectation(lambda t: _late(run, t), "what was done", rare),
        "ParcaePreemptionsSudden": Expectation(lambda t: _sudden(run, t), EVENTS, rare),
        "ParcaeOperatorAbsent": Expectation(
            lambda t: _absent(run, t),
            "pods (API server)",
            Lag(behind_s=8.0, ahead_s=4.0),
            without_operator=True,
        ),
        "ParcaeMetricsIncomplete": Expectation(lambda t: {}, "the operator's log"),
        "ParcaeBoardUnreachable": _down(fleet, lambda look: look.board_up),
        "ParcaePlannerDown": _down(fleet, lambda look: look.planner_up),
        "ParcaeApiServerUnreachable": _down(fleet, lambda look: look.api_up),
    }


def _down(fleet: Fleet, is_up: Callable[[Look], bool]) -> Expectation:
    up = fleet.answers(is_up)

    def expect(at_s: float) -> Records | None:
        # In the operator's namespace: what its target is labelled with.
        found = up.expect(at_s) or {}
        return {labels(namespace=SYSTEM): 0.0} if found.get(NONE) == 0.0 else {}

    return replace(up, expect=expect, lag=PULSE)


def _stalled(run: Run, at_s: float) -> Records | None:
    look = run.look(at_s)
    if look is None:
        return None
    before = run.looks.at(at_s - 900)
    found = {}
    for key, status in run.statuses(look).items():
        if not status or status["phase"] not in ("Training", "Migrating"):
            continue
        if before is None or key not in before.jobs:
            continue  # it is younger than the window
        looks = [
            s for each in run.looks.between(at_s - 900, at_s) if (s := run.statuses(each).get(key))
        ]
        if looks and looks[0]["stepsCommitted"] == looks[-1]["stepsCommitted"]:
            found[of(key)] = 0.0
    return found


def _short(run: Run, look: Look) -> Records:
    found = {}
    for key, status in run.statuses(look).items():
        if not status or status["phase"] not in ("Pending", "Training", "Migrating", "Paused"):
            continue
        if ready(status) < look.jobs[key]["spec"]["instances"]["min"]:
            found[of(key)] = ready(status)
    return found


def _replays(run: Run, job: Job, at_s: float) -> Records | None:
    status = run.status(at_s)
    if status is None:
        return None
    replayed = sum(m.steps_replayed for m in run.migrations if m.at_unix_s <= at_s)
    steps = job.steps(status) if status else 0
    if replayed <= 2 or not steps or replayed / steps <= 0.05:
        return {}
    return {of(run.job): replayed / steps}


def _late(run: Run, at_s: float) -> Records:
    leads = [lead for when, lead in run.noticed if when <= at_s]
    return (
        {NONE: Between(0.0, 5.0)} if len(leads) > 2 and sorted(leads)[len(leads) // 2] < 5 else {}
    )


def _sudden(run: Run, at_s: float) -> Records:
    sudden, noticed = count(run.lost_suddenly, at_s), count(run.lost_noticed, at_s)
    every = sudden + noticed
    return {of(run.job): sudden / every} if every > 3 and sudden / every > 0.5 else {}


def _absent(run: Run, at_s: float) -> Records | None:
    look = run.look(at_s)
    if look is None:
        return None
    return {} if look.operators else {NONE: 1.0}
