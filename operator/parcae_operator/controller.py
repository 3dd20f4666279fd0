"""The job controller: an observation in, actions out. Pure.

Level-triggered: it looks at how things stand, not at what happened, so a missed or doubled event
changes nothing. The same controller drives a Kubernetes cluster and a local run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from parcae_api.plan import Plan, PlanReason
from parcae_api.planning import Planner
from parcae_operator.actions import (
    Action,
    CreatePods,
    DeletePods,
    Hold,
    PublishPlan,
    SetStatus,
)
from parcae_operator.ending import find_end, needs_another_round
from parcae_operator.joining import hold
from parcae_operator.observation import (
    Observation,
    PodPhase,
    is_formed,
    living_workers,
    starting_agents,
)
from parcae_operator.pods import pods_done, pods_too_many, pods_wanted
from parcae_operator.replan import Choice, choose, form, is_short, pause
from parcae_operator.status import make_status
from parcae_operator.waits import is_over

INITIAL_WAIT_S = 60.0
"""How long the first plan waits for agents that are still starting."""
BROKEN_GRACE_S = 0.5
"""How long a broken revision waits for the loss behind it to be seen, before it is re-formed."""
BROKEN_GRACE_LIMIT_S = 10.0
"""The grace doubles with every revision in a row that did not form, up to this."""
FORMING_LIMIT_S = 20.0
"""How long a revision may take to form before it is replaced."""


Ask = Callable[[], Choice]
"""Asks the planner, the first time it is called: in quiet times nobody does."""


def decide(seen: Observation, planner: Planner) -> list[Action]:
    """Decide what to do now."""
    ask = functools.cache(lambda: choose(seen, planner))
    waiting = _waiting(seen, ask)
    actions: list[Action] = [SetStatus(make_status(seen, waiting))]
    end = find_end(seen, planner, waiting)
    if end is not None:
        return [*actions, end]
    plan = _next_plan(seen, ask) if seen.profile is not None else None
    if isinstance(plan, Hold):
        actions.append(plan)
    elif plan is not None:  # first: workers stand still for it, and no cluster is asked
        answer = ask().answer if plan.layout is not None else None
        actions.append(PublishPlan(plan, answer))
    if wanted := pods_wanted(seen):
        actions.append(CreatePods(wanted))
    if unneeded := (*pods_too_many(seen), *pods_done(seen)):
        actions.append(DeletePods(unneeded))
    return actions


def _waiting(seen: Observation, ask: Ask) -> str:
    """Why nothing trains, for people; empty when something does, or could at once."""
    if seen.plan is not None and seen.plan.layout is not None:
        return ""
    if seen.job.spec.suspend:
        return "spec.suspend is true"
    if seen.profile is not None:
        answer = ask().answer
        return answer.why if answer.layout is None else ""
    if not living_workers(seen) and not starting_agents(seen):
        return _no_instance(seen)
    return "no agent has loaded the user's code yet"


def _no_instance(seen: Observation) -> str:
    pending = [pod for pod in seen.pods if pod.phase is PodPhase.PENDING]
    coming = sum(bool(pod.node) for pod in pending)
    told = [
        f"{count} {'pod' if count == 1 else 'pods'} {one if count == 1 else many}"
        for count, one, many in (
            (len(pending) - coming, "waits for a node", "wait for a node"),
            (coming, "starts on its node", "start on their nodes"),
        )
        if count
    ]
    return "; ".join(["no instance is there", *told])


def _next_plan(seen: Observation, ask: Ask) -> Plan | Hold | None:
    """The plan that should replace the current one, or None while that one serves."""
    plan, profile, progress = seen.plan, seen.profile, seen.progress
    if plan is None:
        return _first_plan(seen, ask)
    if seen.awaited and seen.broken_since_unix_s is None:
        return None  # as far as anybody can tell they train
    if (urgent := _urgent(seen)) is not None:
        return _replace(seen, ask(), urgent)
    if plan.layout is None:
        return _resume(seen, ask)
    if not is_formed(seen):
        return None  # let it form: whoever joined or leaves is dealt with right after
    if seen.finish or seen.job.spec.suspend:
        return _stop(seen)
    if profile is not None and progress is not None and progress.step >= profile.total_steps:
        return None  # the final state is being saved
    if _someone_leaves(seen, plan):
        return _replace(seen, ask(), PlanReason.NOTICE)
    if _others_are_there(seen, plan) and not seen.more_of_the_same:
        reason = PlanReason.JOIN
    elif _is_time_to_look_again(seen):
        reason = PlanReason.FORECAST
    elif is_short(seen):
        reason = PlanReason.SUSPEND
    else:
        return None
    choice = ask()
    if choice.answer.layout is None:
        return _replace(seen, choice, PlanReason.SUSPEND)
    if choice.answer.layout == plan.layout:
        return None
    return hold(seen, plan, choice.answer) or form(seen, choice, reason)


def _first_plan(seen: Observation, ask: Ask) -> Plan | None:
    has_waited = is_over(seen.started_unix_s, seen.now_unix_s, INITIAL_WAIT_S)
    if seen.job.spec.suspend or (starting_agents(seen) and not has_waited):
        return None
    choice = ask()
    return form(seen, choice, PlanReason.INITIAL) if choice.answer.layout is not None else None


def _urgent(seen: Observation) -> PlanReason | None:
    """Why the current plan cannot go on at all, if it cannot."""
    plan = seen.plan
    assert plan is not None
    if plan.layout is None:
        return None
    alive = {worker.id for worker in living_workers(seen)}
    needed = plan.workers if is_formed(seen) else plan.members
    if any(worker not in alive for worker in needed):
        return PlanReason.LOSS
    broken_s = seen.broken_since_unix_s
    if broken_s is not None and is_over(broken_s, seen.now_unix_s, _broken_grace_s(seen, plan)):
        return PlanReason.LOSS
    if not is_formed(seen) and is_over(plan.created_unix_s, seen.now_unix_s, FORMING_LIMIT_S):
        return PlanReason.LOSS
    return None


def _broken_grace_s(seen: Observation, plan: Plan) -> float:
    formed = seen.progress.revision if seen.progress else 0
    failures = max(0, min(16, plan.revision - formed - 1))
    return min(BROKEN_GRACE_LIMIT_S, BROKEN_GRACE_S * 2.0**failures)


def _replace(seen: Observation, choice: Choice, reason: PlanReason) -> Plan:
    """The current plan cannot stay: another layout, or a pause where there is none."""
    if choice.answer.layout is None:
        why = f"{choice.answer.why}; training pauses and its state is kept"
        return pause(seen, reason, why)
    return form(seen, choice, reason)


def _resume(seen: Observation, ask: Ask) -> Plan | None:
    """From a pause: on, or to the end."""
    ending = seen.plan is not None and seen.plan.reason is PlanReason.FINISH
    if seen.finish and not ending:
        return _stop(seen)
    if ending:
        if not needs_another_round(seen):
            return None
        # Someone died with a layer that nobody else holds: back to a checkpoint, then end.
        reason = PlanReason.LOSS
    elif seen.job.spec.suspend:
        return None
    else:
        reason = PlanReason.JOIN
    choice = ask()
    return form(seen, choice, reason) if choice.answer.layout is not None else None


def _stop(seen: Observation) -> Plan:
    """Leave the grid at the next step's end and save: the job ends or is suspended."""
    if seen.finish:
        return pause(seen, PlanReason.FINISH, seen.finish)
    return pause(seen, PlanReason.SUSPEND, "spec.suspend is true")


def _someone_leaves(seen: Observation, plan: Plan) -> bool:
    in_grid = set(plan.workers)
    return any(worker.leaving and worker.id in in_grid for worker in living_workers(seen))


def _is_time_to_look_again(seen: Observation) -> bool:
    """Whether an interval has brought a new forecast, and newer measurements, without any event."""
    return seen.interval_ended and seen.history is not None


def _others_are_there(seen: Observation, plan: Plan) -> bool:
    """Whether someone outside the grid could join it.

    Without a forecast only then may a better layout replace one that serves: scattering
    measurements never do.
    """
    in_grid = set(plan.workers)
    return any(not w.leaving and w.id not in in_grid for w in living_workers(seen))
