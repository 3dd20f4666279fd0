"""When a job is over: done, told to end, or impossible. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from parcae_api.membership import Holding, WorkerInfo
from parcae_api.plan import PlanReason
from parcae_api.planning import Planner, PlanRequest
from parcae_operator.actions import Complete, Fail
from parcae_operator.attempts import attempts
from parcae_operator.observation import Observation, living_workers


def find_end(seen: Observation, planner: Planner, waiting: str) -> Complete | Fail | None:
    """The job's end, once it is reached.

    Args:
        seen: How things stand.
        planner: Asked whether the job could ever run.
        waiting: Why nothing trains, empty while something does.
    """
    past = attempts(seen)
    if len(past) > seen.job.spec.backoff_limit:
        return Fail(_tried(past[-1].message, len(past)), past[-1].traceback)
    if seen.profile is not None and (step := saved_step(seen)) >= seen.profile.total_steps:
        return Complete(step, f"all {steps(step)} committed", saved=True)
    if seen.plan is None:
        return _never_began(seen, planner, waiting)
    if seen.plan.reason is PlanReason.FINISH:
        return _told_to_end(seen, waiting)
    return None


def saved_step(seen: Observation) -> int:
    """The newest step of which every layer is saved for good, by what agents say; or 0."""
    return _whole(seen, (w.saved for w in _workers(seen) if w.saved is not None))


def needs_another_round(seen: Observation) -> bool:
    """Told to end, all have obeyed, and yet a layer is not saved that once was trained."""
    return seen.progress is not None and all_have_obeyed(seen) and not _final_step(seen)


def _tried(message: str, times: int) -> str:
    return message if times == 1 else f"{message} (attempt {times}, spec.backoffLimit is reached)"


def _never_began(seen: Observation, planner: Planner, waiting: str) -> Complete | Fail | None:
    if seen.profile is not None:
        # As many workers as there can be, and any amount of memory: still nothing?
        spec = seen.job.spec
        answer = planner.plan(
            PlanRequest(
                profile=seen.profile,
                num_workers=spec.instances.max,
                pipeline=spec.pipeline,
            )
        )
        if answer.layout is None:
            return Fail(f"no layout is possible: {answer.why}; change the manifest", "")
    if seen.finish:
        return Complete(0, f"{seen.finish}, before any step was trained: {waiting}", saved=False)
    return None


def _told_to_end(seen: Observation, waiting: str) -> Complete | None:
    why = seen.finish or "told to end"
    if step := _final_step(seen):
        return Complete(step, f"{why}: {steps(step)} committed", saved=True)
    if not all_have_obeyed(seen):
        return None
    if not waiting and needs_another_round(seen):
        return None
    # Nobody who lives could save any more than there is.
    step = seen.progress.step if seen.progress else 0
    detail = waiting or "no epoch had formed"
    return Complete(step, f"{why}, while training was paused: {detail}", saved=False)


def all_have_obeyed(seen: Observation) -> bool:
    """Whether no living worker has anything more to do for the current plan."""
    return all(_has_obeyed(seen, worker.info) for worker in living_workers(seen))


def _has_obeyed(seen: Observation, worker: WorkerInfo) -> bool:
    return seen.plan is not None and worker.idle_revision >= seen.plan.revision


def _final_step(seen: Observation) -> int:
    """The step at which all layers are saved by workers that train no more; 0 before that.

    What was saved at an earlier pause does not count: more has been trained since.
    """
    saved = (w.saved for w in _workers(seen) if w.saved is not None and _has_obeyed(seen, w))
    step = _whole(seen, saved)
    return step if seen.progress is None or step >= seen.progress.step else 0


def _workers(seen: Observation) -> Iterable[WorkerInfo]:
    return (worker for agent in seen.agents.values() for worker in agent.workers)


def _whole(seen: Observation, held: Iterable[Holding]) -> int:
    """The newest step of which all layers are among these."""
    if seen.profile is None:
        return 0
    layers: dict[int, set[int]] = {}
    for holding in held:
        layers.setdefault(holding.step, set()).update(holding.layers)
    num_layers = len(seen.profile.layers)
    return max((step for step, found in layers.items() if len(found) == num_layers), default=0)


def steps(number: int) -> str:
    """How many, with its verb."""
    return "1 step is" if number == 1 else f"{number} steps are"
