"""The status of a job, derived from an observation. Pure."""

from __future__ import annotations

from parcae_api.job import Condition, ConditionType, JobStatus
from parcae_operator.observation import Observation, living_workers


def make_status(seen: Observation) -> JobStatus:
    """Conditions and numbers as they stand."""
    plan, progress = seen.plan, seen.progress
    layout = plan.layout if plan else None
    return JobStatus(
        conditions=(_progressing(seen),),
        configuration=str(layout.configuration) if layout else "",
        revision=plan.revision if plan else 0,
        step=progress.step if progress else 0,
        instances=len([w for w in living_workers(seen) if not w.leaving]),
        throughput_samples_per_second=(progress.samples_per_second or 0.0) if progress else 0.0,
    )


def _progressing(seen: Observation) -> Condition:
    if seen.profile is None:
        return _condition("False", "Starting", "waiting for the first agent to load the code")
    if seen.plan is None:
        return _condition("False", "WaitingForInstances", _waiting(seen))
    if seen.plan.layout is None:
        return _condition("False", "Paused", seen.plan.why)
    if seen.progress is None or seen.progress.revision != seen.plan.revision:
        return _condition("True", "Forming", f"revision {seen.plan.revision} is forming")
    return _condition("True", "Training", seen.plan.why)


def _waiting(seen: Observation) -> str:
    ready = len(living_workers(seen))
    return f"{ready} instances are ready, instances.min is {seen.job.spec.instances.min}"


def _condition(status: str, reason: str, message: str) -> Condition:
    return Condition.model_validate(
        {
            "type": ConditionType.PROGRESSING,
            "status": status,
            "reason": reason,
            "message": message[:1024],
        }
    )
