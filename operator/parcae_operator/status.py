"""The status of a job, derived from an observation. Pure."""

from __future__ import annotations

from parcae_api.job_status import Condition, ConditionType, JobStatus
from parcae_operator.observation import Observation, is_formed, living_workers, starting_agents


def make_status(seen: Observation, waiting: str) -> JobStatus:
    """Conditions and numbers as they stand.

    Args:
        seen: How things stand.
        waiting: Why nothing trains, empty while something does or could at once.
    """
    plan, progress = seen.plan, seen.progress
    layout = plan.layout if plan else None
    return JobStatus(
        conditions=(_progressing(seen, waiting),),
        configuration=str(layout.configuration) if layout else "",
        revision=plan.revision if plan else 0,
        step=progress.step if progress else 0,
        instances=len([w for w in living_workers(seen) if not w.leaving]),
        throughput_samples_per_second=(progress.samples_per_second or 0.0) if progress else 0.0,
    )


def _progressing(seen: Observation, waiting: str) -> Condition:
    if seen.plan is None:
        reason = "Starting" if seen.profile is None else "WaitingForInstances"
        return _condition("False", reason, waiting or _starting(seen))
    if seen.plan.layout is None:
        return _condition("False", "Paused", seen.plan.why)
    if not is_formed(seen):
        return _condition("True", "Forming", f"revision {seen.plan.revision} is forming")
    return _condition("True", "Training", seen.plan.why)


def _starting(seen: Observation) -> str:
    ready, starting = len(living_workers(seen)), starting_agents(seen)
    return f"{ready} instances are ready, {starting} are still starting"


def _condition(status: str, reason: str, message: str) -> Condition:
    return Condition.model_validate(
        {
            "type": ConditionType.PROGRESSING,
            "status": status,
            "reason": reason,
            "message": message[:1024],
        }
    )
