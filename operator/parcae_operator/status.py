"""The status of a job, derived from an observation. Pure.

``make_status`` says how things stand; counters and the story so far are the tally's, the times of
the conditions are ``with_transitions``'.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from parcae_api.job_status import (
    Condition,
    ConditionType,
    InstanceCounts,
    JobStatus,
    Phase,
)
from parcae_operator.actions import Complete, Fail
from parcae_operator.attempts import attempts
from parcae_operator.observation import (
    Observation,
    PodPhase,
    is_formed,
    living_workers,
    starting_agents,
    staying_workers,
)

_LONGEST_MESSAGE = 1024
_NOTHING_RUNS = {
    "configuration": "",
    "instances": 0,
    "instance_counts": InstanceCounts(),
    "throughput_samples_per_second": 0.0,
    "liveput_samples_per_second": 0.0,
}


def timestamp(unix_s: float) -> str:
    """RFC 3339 in UTC, to the second, as Kubernetes writes times."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_status(seen: Observation, waiting: str) -> JobStatus:
    """Conditions and numbers as they stand.

    Args:
        seen: How things stand.
        waiting: Why nothing trains, empty while something does or could at once.
    """
    plan, progress, profile = seen.plan, seen.progress, seen.profile
    layout = plan.layout if plan else None
    conditions = (
        _ready(seen, waiting),
        _progressing(seen, waiting),
        _degraded(seen),
        _suspended(seen),
    )
    return JobStatus(
        observed_generation=seen.job.metadata.generation,
        phase=phase_of(conditions),
        conditions=conditions,
        configuration=str(layout.configuration) if layout else "",
        revision=plan.revision if plan else 0,
        step=progress.step if progress else 0,
        total_steps=profile.total_steps if profile else 0,
        samples=progress.samples if progress else 0,
        instances=len(staying_workers(seen)),
        instance_counts=_instance_counts(seen),
        throughput_samples_per_second=_throughput(seen),
        failures=len(attempts(seen)),
    )


def ended(status: JobStatus, end: Complete | Fail) -> JobStatus:
    """The status of a job that is over."""
    if isinstance(end, Complete):
        over = _condition(ConditionType.COMPLETED, True, "AllStepsCommitted", end.message)
    else:
        over = _condition(ConditionType.FAILED, True, "UserCodeFailed", end.message)
    reason = "Completed" if isinstance(end, Complete) else "Failed"
    conditions = (
        _condition(ConditionType.READY, False, reason, "the job is over"),
        _condition(ConditionType.PROGRESSING, False, reason, "the job is over"),
        _condition(ConditionType.DEGRADED, False, reason, ""),
        _condition(ConditionType.SUSPENDED, False, reason, ""),
        over,
    )
    return status.model_copy(
        update={
            "conditions": conditions,
            "phase": phase_of(conditions),
            **_NOTHING_RUNS,
            "step": max(status.step, end.step) if isinstance(end, Complete) else status.step,
        }
    )


def refused(before: JobStatus, generation: int, message: str) -> JobStatus:
    """The status of a job whose spec cannot work: nothing is created until it is corrected.

    What was committed before stays.
    """
    conditions = (
        _condition(ConditionType.READY, False, "InvalidSpec", message),
        _condition(ConditionType.PROGRESSING, False, "InvalidSpec", message),
        _condition(ConditionType.DEGRADED, True, "InvalidSpec", message),
    )
    return before.model_copy(
        update={
            **_NOTHING_RUNS,
            "observed_generation": generation,
            "phase": phase_of(conditions),
            "conditions": conditions,
        }
    )


def is_over(status: JobStatus) -> bool:
    """Whether nothing will be done for the job any more."""
    return status.holds(ConditionType.COMPLETED) or status.holds(ConditionType.FAILED)


def in_trouble(written: JobStatus, reason: str, message: str) -> JobStatus:
    """What was last known, and what is in the way of knowing more now."""
    degraded = _condition(ConditionType.DEGRADED, True, reason, message)
    others = [c for c in written.conditions if c.type is not ConditionType.DEGRADED]
    if not others:
        types = (ConditionType.READY, ConditionType.PROGRESSING)
        others = [_condition(type_, False, "Starting", message) for type_ in types]
    conditions = (*others, degraded)
    return written.model_copy(update={"conditions": conditions, "phase": phase_of(conditions)})


def phase_of(conditions: Iterable[Condition]) -> Phase:
    """The conditions in one word."""
    held = {c.type: c for c in conditions if c.status == "True"}
    for type_, phase in (
        (ConditionType.FAILED, Phase.FAILED),
        (ConditionType.COMPLETED, Phase.COMPLETED),
        (ConditionType.SUSPENDED, Phase.SUSPENDED),
        (ConditionType.READY, Phase.TRAINING),
    ):
        if type_ in held:
            return phase
    progressing = next((c for c in conditions if c.type is ConditionType.PROGRESSING), None)
    match progressing.reason if progressing else "":
        case "Forming":
            return Phase.MIGRATING
        case "Paused":
            return Phase.PAUSED
        case _:
            return Phase.PENDING


def with_transitions(
    status: JobStatus, before: JobStatus, generation: int, now_unix_s: float
) -> JobStatus:
    """The same status with the times at which each condition last flipped."""
    now = timestamp(now_unix_s)
    conditions = []
    for condition in status.conditions:
        old = before.condition(condition.type)
        kept = old is not None and old.status == condition.status and old.last_transition_time
        conditions.append(
            condition.model_copy(
                update={
                    "observed_generation": generation,
                    "last_transition_time": kept or now,
                }
            )
        )
    return status.model_copy(
        update={"conditions": tuple(conditions), "observed_generation": generation}
    )


def _ready(seen: Observation, waiting: str) -> Condition:
    if is_formed(seen):
        assert seen.plan is not None
        layout = seen.plan.layout
        text = f"trains as {layout.configuration}" if layout else ""
        return _condition(ConditionType.READY, True, "Training", text)
    progressing = _progressing(seen, waiting)
    return _condition(ConditionType.READY, False, progressing.reason, progressing.message)


def _progressing(seen: Observation, waiting: str) -> Condition:
    type_ = ConditionType.PROGRESSING
    if seen.plan is None:
        reason = "Starting" if seen.profile is None else "WaitingForInstances"
        return _condition(type_, False, reason, waiting or _starting(seen))
    if seen.plan.layout is None:
        return _condition(type_, False, "Paused", seen.plan.why)
    if not is_formed(seen):
        return _condition(type_, True, "Forming", f"revision {seen.plan.revision} is forming")
    return _condition(type_, True, "Training", seen.plan.why)


def _degraded(seen: Observation) -> Condition:
    """The first thing that is not as it should be; the rest shows when that is mended."""
    type_ = ConditionType.DEGRADED
    for trouble in seen.troubles:
        return _condition(type_, True, trouble.reason, trouble.message)
    for pod in seen.pods:
        if pod.trouble:
            return _condition(type_, True, "PodsDoNotStart", f"{pod.name}: {pod.trouble}")
    past = attempts(seen)
    if past:
        limit = seen.job.spec.backoff_limit
        text = f"crash {len(past)} of {limit} that are tried again: {past[-1].message}"
        return _condition(type_, True, "UserCodeCrashed", text)
    return _condition(type_, False, "AsExpected", "")


def _suspended(seen: Observation) -> Condition:
    type_ = ConditionType.SUSPENDED
    if not seen.job.spec.suspend:
        return _condition(type_, False, "NotSuspended", "")
    if seen.plan is not None and seen.plan.layout is not None:
        return _condition(type_, False, "Suspending", "stops at the next step's end")
    if seen.progress is None:
        return _condition(type_, True, "Suspended", "nothing was trained yet")
    if all(pod.phase is PodPhase.GONE for pod in seen.pods):
        return _condition(
            type_, True, "Suspended", "its state is saved and its pods are given back"
        )
    text = (
        "its pods keep the state" if seen.job.spec.checkpoint.path is None else "saving its state"
    )
    return _condition(type_, True, "Suspended", text)


def _instance_counts(seen: Observation) -> InstanceCounts:
    workers = living_workers(seen)
    leaving = sum(worker.leaving for worker in workers)
    in_grid = set(seen.plan.workers if seen.plan else ())
    training = sum(w.id in in_grid and not w.leaving for w in workers)
    return InstanceCounts(
        training=training,
        standby=len(workers) - leaving - training,
        starting=starting_agents(seen),
        pending=sum(pod.phase is PodPhase.PENDING and not pod.notice for pod in seen.pods),
        leaving=leaving,
    )


def _throughput(seen: Observation) -> float:
    if seen.progress is None or not is_formed(seen):
        return 0.0
    return seen.progress.samples_per_second or 0.0


def _starting(seen: Observation) -> str:
    ready, starting = len(living_workers(seen)), starting_agents(seen)
    return f"{ready} instances are ready, {starting} are still starting"


def _condition(type_: ConditionType, holds: bool, reason: str, message: str) -> Condition:
    return Condition(
        type=type_,
        status="True" if holds else "False",
        reason=reason,
        message=message[:_LONGEST_MESSAGE],
    )
