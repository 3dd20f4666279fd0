"""A new plan from an observation: which layout, who takes which place, who serves state. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parcae_api.plan import Layout, Plan, PlanReason, WorkerId
from parcae_api.planning import MOST_ROLLBACK_SECONDS, PlanAnswer, Planner, PlanRequest
from parcae_operator.observation import (
    Candidate,
    Observation,
    is_formed,
    living_workers,
    staying_workers,
)
from parcae_optimizer.placement import place


@dataclass(frozen=True)
class Choice:
    """What would be planned now."""

    answer: PlanAnswer
    staying: list[Candidate]


def choose(seen: Observation, planner: Planner) -> Choice:
    """The layout for the workers that stay; none below ``instances.min``."""
    assert seen.profile is not None
    staying = staying_workers(seen)
    if is_short(seen):
        least, ready = seen.job.spec.instances.min, _count(len(staying))
        why = f"{ready} ready, fewer than instances.min ({least})"
        return Choice(PlanAnswer(layout=None, why=why), staying)
    return Choice(planner.plan(_request(seen, staying)), staying)


def _request(seen: Observation, staying: list[Candidate]) -> PlanRequest:
    assert seen.profile is not None
    spec, current = seen.job.spec, _current(seen)
    memories = [w.info.memory_bytes for w in staying if w.info.memory_bytes is not None]
    return PlanRequest(
        profile=seen.profile,
        num_workers=len(staying),
        pipeline=spec.pipeline,
        worker_memory_bytes=min(memories, default=None),
        current=current,
        replicas_left=_replicas_left(seen.plan, staying) if current else None,
        capacity=max(spec.instances.max, len(staying)),
        history=seen.history,
        likely_removals=sum(worker.hinted for worker in staying),
        horizon=spec.planning.horizon,
        rollback_seconds=_rollback_seconds(seen),
        step_seconds=dict(seen.step_seconds),
    )


def _current(seen: Observation) -> Layout | None:
    """Today's layout; none if it is of other layers, as after a change of the user's code."""
    layout = seen.plan.layout if seen.plan else None
    if layout is None or seen.profile is None:
        return None
    return layout if layout.num_layers == len(seen.profile.layers) else None


def _rollback_seconds(seen: Observation) -> float:
    """Half a checkpoint interval of work, to one digit: each other value costs new tables."""
    step_seconds = (seen.progress.step_seconds if seen.progress else None) or 0.0
    seconds = seen.job.spec.checkpoint.every_steps / 2 * step_seconds
    return min(float(f"{seconds:.1g}"), MOST_ROLLBACK_SECONDS)


def _replicas_left(plan: Plan | None, staying: list[Candidate]) -> tuple[int, ...] | None:
    """Of every stage of the current grid: members that stay."""
    if plan is None or plan.layout is None:
        return None
    ids = {worker.id for worker in staying}
    return tuple(sum(worker in ids for worker in stage) for stage in zip(*plan.grid, strict=True))


def is_short(seen: Observation) -> bool:
    """Whether fewer than ``instances.min`` are ready and stay."""
    return len(staying_workers(seen)) < seen.job.spec.instances.min


def form(seen: Observation, choice: Choice, reason: PlanReason) -> Plan:
    """A plan that trains in the chosen layout, for the fewest bytes moved."""
    assert seen.profile is not None
    layout = choice.answer.layout
    assert layout is not None
    current, stale = _holders(seen)
    held = {worker.id: worker.held for worker in current if worker.held is not None}
    grid = place(layout, seen.profile, _preferred(seen.plan, choice.staying), held)
    members = {worker for row in grid for worker in row}
    return _plan(
        seen,
        reason,
        choice.answer.why,
        layout=layout,
        grid=grid,
        donors=_donors(layout, members, current, stale),
    )


def pause(seen: Observation, reason: PlanReason, why: str) -> Plan:
    """A plan in which all leave the grid at the next step's end, and keep and save their state."""
    return _plan(seen, reason, why)


def _plan(
    seen: Observation,
    reason: PlanReason,
    why: str,
    *,
    layout: Layout | None = None,
    grid: tuple[tuple[WorkerId, ...], ...] = (),
    donors: tuple[WorkerId, ...] = (),
) -> Plan:
    return Plan(
        revision=next_revision(seen),
        reason=reason,
        why=why,
        created_unix_s=seen.now_unix_s,
        layout=layout,
        grid=grid,
        donors=donors,
    )


def next_revision(seen: Observation) -> int:
    """Of a plan that were made now: one more than the newest that anybody knows of.

    A board that lost its data must not go back: workers obey only what is newer than what they
    have obeyed.
    """
    known = [seen.plan.revision if seen.plan else 0]
    for agent in seen.agents.values():
        for worker in agent.workers:
            known += [worker.revision or 0, worker.idle_revision, worker.broken_revision]
            known += [worker.holding.revision] if worker.holding else []
    return max(known) + 1


def _preferred(current: Plan | None, staying: Sequence[Candidate]) -> list[WorkerId]:
    """Members first, in their order, so that equal placements keep everyone where they are."""
    ids = [worker.id for worker in staying]
    members = [worker for worker in (current.workers if current else ()) if worker in ids]
    return members + [worker for worker in ids if worker not in members]


def _holders(seen: Observation) -> tuple[list[Candidate], list[Candidate]]:
    """Workers whose state is up to date, and those whose state seems to be stale.

    The workers' own agreement knows for sure: it goes by the members of the newest epoch that any
    of them agreed on, and by their steps. On the board a step is as of when a worker last entered
    or left an epoch. So while an epoch trains, its grid is up to date and its donors no more; while
    it forms, all of its members still are, even one that broke off before it could agree.
    """
    holding = [(w, w.info.holding) for w in living_workers(seen) if w.info.holding is not None]
    newest = max((h.revision for _, h in holding), default=0)
    plan = seen.plan
    if plan is not None and plan.layout is not None and plan.revision == newest:
        members = plan.workers if is_formed(seen) else plan.members
        current = [w for w, _ in holding if w.id in members]
    else:
        step = max((h.step for _, h in holding if h.revision == newest), default=0)
        current = [w for w, h in holding if h.revision == newest and h.step == step]
    return current, [w for w, _ in holding if w not in current]


def _donors(
    layout: Layout,
    members: set[WorkerId],
    current: Sequence[Candidate],
    stale: Sequence[Candidate],
) -> tuple[WorkerId, ...]:
    """The fewest workers outside the grid that hold what no one in it holds.

    All those who seem stale and hold what nobody else does come too: the agreement will tell which
    of them is not, and a layer that is left behind for nothing costs a rollback.
    """
    missing = set(range(layout.num_layers))
    for worker in current:
        if worker.id in members:
            missing -= set(worker.held or ())
    donors: list[WorkerId] = []
    outside = [worker for worker in current if worker.id not in members]
    while missing and outside:
        best = max(outside, key=lambda w: (len(missing & set(w.held or ())), not w.leaving))
        gained = missing & set(best.held or ())
        if not gained:
            break
        donors.append(best.id)
        missing -= gained
        outside.remove(best)
    seem_stale = [w.id for w in stale if w.id not in members and missing & set(w.held or ())]
    return (*donors, *seem_stale)


def _count(instances: int) -> str:
    return "1 instance is" if instances == 1 else f"{instances} instances are"
