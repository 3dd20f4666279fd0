"""A job in the middle of its training, as its object tells."""

from __future__ import annotations

from typing import Any

from kube_objects import Object, job_body, rfc3339

from parcae_api.job_status import (
    Condition,
    ConditionType,
    Decision,
    InstanceCounts,
    JobStatus,
    LastMigration,
    Phase,
)
from parcae_operator.kube.objects import dump_status

NOW = 1_900_010_000.0


def condition(type_: str, holds: bool, reason: str, message: str = "") -> Condition:
    return Condition(
        type=ConditionType(type_),
        status="True" if holds else "False",
        reason=reason,
        message=message,
        last_transition_time=rfc3339(NOW - 180),
    )


TRAINING = JobStatus(
    observed_generation=1,
    phase=Phase.TRAINING,
    conditions=(
        condition("Ready", True, "Training", "trains as 2x2"),
        condition("Degraded", True, "PlannerUnavailable", "plans are reactive"),
        condition("Suspended", False, "NotSuspended"),
    ),
    configuration="2x2",
    revision=7,
    step=1234,
    total_steps=5000,
    samples=39488,
    instance_counts=InstanceCounts(training=4, standby=1, pending=2),
    throughput_samples_per_second=123.45,
    liveput_samples_per_second=99.9,
    preemptions=5,
    preemptions_noticed=3,
    migrations=6,
    last_migration=LastMigration(
        time=rfc3339(NOW - 300),
        revision=7,
        kind="inter_stage",
        pause_seconds=0.42,
        bytes_moved=12_300_000,
        steps_replayed=1,
    ),
    decisions=(
        Decision(
            time=rfc3339(NOW - 301),
            revision=7,
            reason="loss",
            configuration="2x2",
            why="2x2 is the best of 4 instances",
        ),
        Decision(
            time=rfc3339(NOW - 7300),
            revision=6,
            reason="suspend",
            configuration="paused",
            why="spec.suspend is true",
        ),
    ),
    start_time=rfc3339(NOW - 4 * 86_400),
)


def body_of(status: JobStatus | None, **metadata: Any) -> Object:
    body = job_body()
    body["metadata"].update(metadata)
    if status is not None:
        body["status"] = {k: v for k, v in dump_status(status).items() if v is not None}
    return body
