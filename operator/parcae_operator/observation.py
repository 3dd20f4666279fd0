"""All that the controller decides from. Gathered at the edge; here nothing is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from parcae_api.events import Failed
from parcae_api.history import History
from parcae_api.job import ParcaeJob
from parcae_api.membership import AgentState, Membership, Notice, WorkerInfo
from parcae_api.plan import Plan, WorkerId
from parcae_api.profile import Profile
from parcae_api.progress import Progress

BOARD_AWAY = "BoardUnavailable"
"""The reason of a ``Trouble``: etcd does not answer."""


class PodPhase(StrEnum):
    """How far a pod is."""

    PENDING = "pending"
    """No instance for it yet."""
    RUNNING = "running"
    GONE = "gone"
    """Ended, or its instance did."""


@dataclass(frozen=True)
class Crash:
    """A pod ended by a fault of its own: the user's code, or what it was told to run."""

    at_unix_s: float
    message: str


@dataclass(frozen=True)
class Pod:
    """A pod of the job, as the cluster shows it."""

    name: str
    phase: PodPhase
    node: str = ""
    notice: Notice | None = None
    """The cluster's signal that its instance goes away."""
    hinted: bool = False
    """A hint, which may be taken back, that its instance goes away: for the forecast."""
    crash: Crash | None = None
    trouble: str = ""
    """Why it does not start, for people; empty when it does, or just waits for an instance."""


@dataclass(frozen=True)
class Trouble:
    """Something that is not as it should be, while training may go on."""

    reason: str
    """CamelCase, for programs."""
    message: str


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One look at the world."""

    now_unix_s: float
    started_unix_s: float
    """When the job was first seen."""
    job: ParcaeJob
    pods: tuple[Pod, ...] = ()
    agents: Mapping[str, Membership] = field(default_factory=dict)
    """By incarnation."""
    returned: frozenset[str] = frozenset()
    """Of those in the grid: who came to the board after the plan was made, so was off it before."""
    plan: Plan | None = None
    profile: Profile | None = None
    progress: Progress | None = None
    failures: tuple[Failed, ...] = ()
    finish: str = ""
    """Why the job is to end early at the next step's end; empty to go on."""
    broken_since_unix_s: float | None = None
    """When members first said that the current revision is broken."""
    history: History | None = None
    """Instances per planning interval; None where no forecast is wanted."""
    interval_ended: bool = False
    """A planning interval has ended since the last look."""
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    """Measured steps by configuration."""
    starting: frozenset[str] = frozenset()
    """Incarnations that will be ready soon, and that a change of plan may wait for."""
    waited_s: float = 0.0
    """How long this plan has waited for others, and what that has cost: ``foregone_samples``."""
    foregone_samples: float = 0.0
    more_of_the_same: bool = False
    """A better layout for these instances was looked for a moment ago."""
    awaited: frozenset[str] = frozenset()
    """Incarnations in the grid that are off the board because it was away: they will be back."""
    troubles: tuple[Trouble, ...] = ()
    """Of what the operator leans on: the planner, the board, the cluster."""


@dataclass(frozen=True)
class Candidate:
    """A worker that lives."""

    id: WorkerId
    info: WorkerInfo
    leaving: bool
    hinted: bool = False
    """Its instance may go."""

    @property
    def held(self) -> range | None:
        """Layers it says it holds."""
        return self.info.holding.layers if self.info.holding else None


def living_workers(seen: Observation) -> list[Candidate]:
    """Ready workers of agents that are on the board and whose pod is there, oldest pod first."""
    pods = {pod.name: pod for pod in seen.pods}
    position = {pod.name: index for index, pod in enumerate(seen.pods)}
    found: list[tuple[int, Candidate]] = []
    for agent in seen.agents.values():
        pod = pods.get(agent.pod)
        if pod is None or pod.phase is PodPhase.GONE:
            continue
        leaving = pod.notice is not None or agent.notice is not None
        for worker in agent.workers:
            if worker.ready:
                candidate = Candidate(worker.id, worker, leaving, pod.hinted)
                found.append((position[pod.name], candidate))
    return [candidate for _, candidate in sorted(found, key=lambda item: item[0])]


def staying_workers(seen: Observation) -> list[Candidate]:
    """Living workers that nobody has announced to go."""
    return [worker for worker in living_workers(seen) if not worker.leaving]


def staying_instances(seen: Observation) -> frozenset[str]:
    """Incarnations whose workers are ready and stay: what the history counts."""
    return frozenset(worker.id.partition("/")[0] for worker in staying_workers(seen))


def starting_agents(seen: Observation) -> int:
    """Agents that will be ready soon: their pod runs, and is not about to go."""
    on_board = {agent.pod for agent in seen.agents.values()}
    started = {
        agent.pod for agent in seen.agents.values() if agent.state is not AgentState.STARTING
    }
    return sum(
        (pod.phase is PodPhase.RUNNING or pod.name in on_board) and pod.name not in started
        for pod in seen.pods
        if pod.phase is not PodPhase.GONE and pod.notice is None
    )


def starting_on_board(seen: Observation) -> frozenset[str]:
    """Incarnations of agents whose worker loads the user's code, and which nobody announced to go.

    Whoever is not on the board may start there in a second, or have died on its node.
    """
    pods = {pod.name: pod for pod in seen.pods if pod.phase is not PodPhase.GONE}
    return frozenset(
        incarnation
        for incarnation, agent in seen.agents.items()
        if agent.state is AgentState.STARTING
        and agent.pod in pods
        and pods[agent.pod].notice is None
    )


def is_formed(seen: Observation) -> bool:
    """Whether the current plan's epoch trains, by its first worker's report."""
    if seen.plan is None or seen.plan.layout is None or seen.progress is None:
        return False
    return seen.progress.revision == seen.plan.revision
