"""How many pods there should be, and which are too many. Pure."""

from __future__ import annotations

from parcae_api.membership import Membership
from parcae_api.plan import PlanReason
from parcae_operator.attempts import attempts, may_retry
from parcae_operator.ending import all_have_obeyed, saved_step
from parcae_operator.observation import Observation, Pod, PodPhase


def pods_wanted(seen: Observation) -> int:
    """Pods to create so that ``instances.max`` stay requested besides those that leave.

    Those that wait for an instance count: they make an autoscaler look for one.
    """
    if seen.finish or seen.job.spec.suspend:
        return 0
    if not may_retry(attempts(seen), seen.now_unix_s):
        return 0
    return max(0, seen.job.spec.instances.max - len(_staying(seen)))


def pods_too_many(seen: Observation) -> tuple[str, ...]:
    """Names of pods to give back, gently: they get a notice first.

    More than ``instances.max`` are there when the user lowered it, when a node that was given up
    came back, or when an operator that died had asked for some just before.
    """
    if seen.job.spec.suspend:
        return tuple(pod.name for pod in _staying(seen)) if _may_give_all_back(seen) else ()
    if seen.finish:
        return ()
    surplus = len(_staying(seen)) - seen.job.spec.instances.max
    dearest_last = sorted(enumerate(_staying(seen)), key=lambda each: _value(seen, *each))
    return tuple(pod.name for _, pod in dearest_last[: max(0, surplus)])


def pods_done(seen: Observation) -> tuple[str, ...]:
    """Names of pods on instances that go away which nobody needs any more: their state is out.

    They would only be killed with their node; their agents leave in peace before that.
    """
    agents = {agent.pod: agent for agent in seen.agents.values()}
    leaving = [p for p in seen.pods if p.phase is PodPhase.RUNNING and p.notice is not None]
    return tuple(p.name for p in leaving if p.name in agents and _is_free(seen, agents[p.name]))


def _is_free(seen: Observation, agent: Membership) -> bool:
    """Whether the newest plan needs nothing of this agent; the agent itself judges alike."""
    plan = seen.plan
    if plan is not None and plan.reason is PlanReason.FINISH:
        return False
    for worker in agent.workers:
        if not worker.ready or plan is None:
            continue
        keeps_state = worker.holding is not None and seen.job.spec.checkpoint.path is None
        if plan.layout is None and keeps_state:
            return False
        if worker.idle_revision < plan.revision or worker.id in plan.workers:
            return False
    return True


def _value(seen: Observation, age_rank: int, pod: Pod) -> tuple[int, int]:
    """What is lost with a pod: waiting ones first, then those outside the grid, youngest first."""
    in_grid = {worker.partition("/")[0] for worker in (seen.plan.workers if seen.plan else ())}
    agents = {agent.pod: incarnation for incarnation, agent in seen.agents.items()}
    if pod.phase is PodPhase.PENDING:
        worth = 0
    elif pod.name not in agents:
        worth = 1
    else:
        worth = 3 if agents[pod.name] in in_grid else 2
    return worth, -age_rank


def _staying(seen: Observation) -> list[Pod]:
    return [p for p in seen.pods if p.phase is not PodPhase.GONE and p.notice is None]


def _may_give_all_back(seen: Observation) -> bool:
    """Whether a suspended job needs its pods no more: what they held is saved, or nothing was."""
    if seen.plan is None or seen.progress is None:
        return True
    if seen.plan.layout is not None or not all_have_obeyed(seen):
        return False
    has_place = seen.job.spec.checkpoint.path is not None
    return has_place and saved_step(seen) >= seen.progress.step
