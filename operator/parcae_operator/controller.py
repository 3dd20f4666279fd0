"""The job controller: an observation in, actions out. Pure.

Level-triggered: it looks at how things stand, not at what happened, so a missed or doubled event
changes nothing. The same controller drives a Kubernetes cluster and a local run.
"""

from __future__ import annotations

from collections.abc import Sequence

from parcae_api.plan import Layout, Plan, PlanReason, WorkerId
from parcae_api.planning import PlanAnswer, Planner, PlanRequest
from parcae_operator.actions import (
    Action,
    Complete,
    CreatePods,
    Fail,
    PublishPlan,
    SetStatus,
)
from parcae_operator.observation import (
    Candidate,
    Observation,
    PodPhase,
    living_workers,
    starting_agents,
)
from parcae_operator.status import make_status
from parcae_optimizer.placement import place

INITIAL_WAIT_S = 60.0
"""How long the first plan waits for agents that are still starting."""
BROKEN_GRACE_S = 0.5
"""How long a broken revision waits for the loss behind it to be seen, before it is re-formed."""
FORMING_LIMIT_S = 20.0
"""How long a revision may take to form before it is replaced."""


def decide(seen: Observation, planner: Planner) -> list[Action]:
    """Decide what to do now."""
    if seen.failures:
        first = min(seen.failures, key=lambda failure: failure.at_unix_s)
        return [SetStatus(make_status(seen)), Fail(first.message, first.traceback)]
    saved = saved_step(seen)
    if saved is not None and _is_over(seen, saved):
        return [SetStatus(make_status(seen)), Complete(saved, _over_message(seen, saved))]
    actions: list[Action] = [SetStatus(make_status(seen))]
    if wanted := _pods_wanted(seen):
        actions.append(CreatePods(wanted))
    plan = _next_plan(seen, planner)
    if plan is not None:
        actions.append(PublishPlan(plan))
    return actions


def saved_step(seen: Observation) -> int | None:
    """The newest step of which every layer is saved for good, by what living agents say."""
    if seen.profile is None:
        return None
    layers: dict[int, set[int]] = {}
    for agent in seen.agents.values():
        for worker in agent.workers:
            if worker.saved is not None:
                layers.setdefault(worker.saved.step, set()).update(worker.saved.layers)
    whole = [step for step, held in layers.items() if len(held) == len(seen.profile.layers)]
    return max(whole, default=None)


def is_formed(seen: Observation) -> bool:
    """Whether the current plan's epoch trains, by its first worker's report."""
    if seen.plan is None or seen.plan.layout is None or seen.progress is None:
        return False
    return seen.progress.revision == seen.plan.revision


def _is_over(seen: Observation, saved: int) -> bool:
    assert seen.profile is not None
    told = seen.plan is not None and seen.plan.reason is PlanReason.FINISH
    return saved >= seen.profile.total_steps or told


def _over_message(seen: Observation, saved: int) -> str:
    assert seen.profile is not None
    if saved >= seen.profile.total_steps:
        return f"all {saved} steps are committed"
    return f"{seen.finish or 'told to end'}: {saved} steps are committed"


def _pods_wanted(seen: Observation) -> int:
    """Pods to create so that ``instances.max`` stay requested besides those that leave."""
    if seen.finish or seen.job.spec.suspend:
        return 0
    staying = [p for p in seen.pods if p.phase is not PodPhase.GONE and p.notice is None]
    return max(0, seen.job.spec.instances.max - len(staying))


def _next_plan(seen: Observation, planner: Planner) -> Plan | None:
    """The plan that should replace the current one, or None while that one serves."""
    if seen.profile is None:
        return None
    workers = living_workers(seen)
    staying = [w for w in workers if not w.leaving]
    if seen.plan is None:
        return _first_plan(seen, planner, workers, staying)
    reason = _urgent(seen, workers)
    if reason is None:
        if _is_forming(seen):
            return None  # let it form: whoever joined or leaves is dealt with right after
        if seen.finish or seen.job.spec.suspend:
            return _stop_plan(seen)
        if seen.progress and seen.progress.step >= seen.profile.total_steps:
            return None  # the final state is being saved
        reason = _leaving(seen, workers)
    return _replan(seen, planner, workers, staying, reason)


def _first_plan(
    seen: Observation, planner: Planner, workers: list[Candidate], staying: list[Candidate]
) -> Plan | None:
    waited = seen.now_unix_s - seen.started_unix_s
    if starting_agents(seen) and waited < INITIAL_WAIT_S:
        return None
    if seen.finish or len(staying) < seen.job.spec.instances.min:
        return None
    return _replan(seen, planner, workers, staying, PlanReason.INITIAL)


def _urgent(seen: Observation, workers: list[Candidate]) -> PlanReason | None:
    """Why the current plan cannot go on at all, if it cannot."""
    plan = seen.plan
    assert plan is not None
    if plan.layout is None:
        return None
    alive = {worker.id for worker in workers}
    needed = plan.workers if is_formed(seen) else plan.members
    if any(worker not in alive for worker in needed):
        return PlanReason.LOSS
    broken_s = seen.broken_since_unix_s
    if broken_s is not None and seen.now_unix_s - broken_s >= BROKEN_GRACE_S:
        return PlanReason.LOSS
    if not is_formed(seen) and seen.now_unix_s - plan.created_unix_s >= FORMING_LIMIT_S:
        return PlanReason.LOSS
    return None


def _is_forming(seen: Observation) -> bool:
    plan = seen.plan
    return plan is not None and plan.layout is not None and not is_formed(seen)


def _leaving(seen: Observation, workers: list[Candidate]) -> PlanReason | None:
    assert seen.plan is not None
    in_grid = set(seen.plan.workers)
    if any(worker.leaving and worker.id in in_grid for worker in workers):
        return PlanReason.NOTICE
    return None


def _replan(
    seen: Observation,
    planner: Planner,
    workers: list[Candidate],
    staying: list[Candidate],
    reason: PlanReason | None,
) -> Plan | None:
    """Ask the planner, and publish if something forces it or the layout gets better."""
    assert seen.profile is not None
    spec = seen.job.spec
    if len(staying) < spec.instances.min:
        answer = PlanAnswer(
            layout=None,
            why=f"{len(staying)} instances stay, fewer than instances.min "
            f"({spec.instances.min}); training pauses and its state is kept",
        )
    else:
        answer = planner.plan(_request(seen, staying))
    current = seen.plan
    if answer.layout is None:
        paused = current is None or current.layout is None
        return None if paused else _make_plan(seen, reason or PlanReason.SUSPEND, answer, ())
    if current is not None and reason is None and not _is_better(current, answer, staying):
        return None
    held = {w.id: w.held for w in workers if w.held is not None}
    grid = place(answer.layout, seen.profile, _preferred(current, staying), held)
    return _make_plan(
        seen,
        reason or PlanReason.JOIN,
        answer,
        grid,
        donors=_donors(answer.layout, grid, workers),
    )


def _is_better(current: Plan, answer: PlanAnswer, staying: list[Candidate]) -> bool:
    """Whether to change without need: only for newcomers, never for scattering measurements."""
    in_grid = set(current.workers)
    newcomers = any(worker.id not in in_grid for worker in staying)
    return newcomers and answer.layout != current.layout


def _request(seen: Observation, staying: list[Candidate]) -> PlanRequest:
    assert seen.profile is not None
    memories = [w.info.memory_bytes for w in staying if w.info.memory_bytes is not None]
    return PlanRequest(
        profile=seen.profile,
        num_workers=len(staying),
        pipeline=seen.job.spec.pipeline,
        worker_memory_bytes=min(memories, default=None),
        current=seen.plan.layout if seen.plan else None,
    )


def _preferred(current: Plan | None, staying: list[Candidate]) -> list[WorkerId]:
    """Members first, in their order, so that equal placements keep everyone where they are."""
    ids = [w.id for w in staying]
    members = [w for w in (current.workers if current else ()) if w in ids]
    return members + [w for w in ids if w not in members]


def _donors(
    layout: Layout, grid: Sequence[Sequence[WorkerId]], workers: Sequence[Candidate]
) -> tuple[WorkerId, ...]:
    """The fewest workers outside the grid that hold what no one in it holds."""
    members = {worker for row in grid for worker in row}
    holding = [w for w in workers if w.info.holding is not None]
    newest = max((w.info.holding.revision for w in holding if w.info.holding), default=0)
    current = [w for w in holding if w.info.holding and w.info.holding.revision == newest]
    missing = set(range(layout.num_layers))
    for worker in current:
        if worker.id in members and worker.held is not None:
            missing -= set(worker.held)
    donors: list[WorkerId] = []
    outside = [w for w in current if w.id not in members and w.held is not None]
    while missing and outside:
        best = max(outside, key=lambda w: (len(missing & set(w.held or ())), not w.leaving))
        gained = missing & set(best.held or ())
        if not gained:
            break
        donors.append(best.id)
        missing -= gained
        outside.remove(best)
    return tuple(donors)


def _stop_plan(seen: Observation) -> Plan | None:
    """Leave the grid at the next step's end and save: the job ends or is suspended."""
    assert seen.plan is not None
    reason = PlanReason.FINISH if seen.finish else PlanReason.SUSPEND
    if seen.plan.reason is reason and seen.plan.layout is None:
        return None
    why = seen.finish or "spec.suspend is true"
    return _make_plan(seen, reason, PlanAnswer(layout=None, why=why), ())


def _make_plan(
    seen: Observation,
    reason: PlanReason,
    answer: PlanAnswer,
    grid: tuple[tuple[WorkerId, ...], ...],
    *,
    donors: tuple[WorkerId, ...] = (),
) -> Plan:
    return Plan(
        revision=seen.plan.revision + 1 if seen.plan else 1,
        reason=reason,
        why=answer.why,
        created_unix_s=seen.now_unix_s,
        layout=answer.layout,
        grid=grid,
        donors=donors,
    )
