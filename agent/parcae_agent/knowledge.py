"""What a supervisor has seen of its plan, its worker and its instance, and what follows. Pure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from parcae_agent.link import State
from parcae_api.events import Failed
from parcae_api.membership import AgentState, Hint, Notice, WorkerInfo
from parcae_api.plan import Plan, PlanReason
from parcae_api.profile import Profile


@dataclass
class Knowledge:
    """Filled by the supervisor as news comes; read from any thread."""

    plan: Plan | None = None
    """The newest; None before the first, and once the job is deleted."""
    worker: State = field(default_factory=lambda: State(revision=None))
    ready: bool = False
    """Whether the worker has loaded the user's code."""
    profile: Profile | None = None
    notice: Notice | None = None
    """Of several, the one that leaves the least time."""
    hint: Hint | None = None
    failure: Failed | None = None
    heard_monotonic_s: float = field(default_factory=time.monotonic)
    """When the worker last said anything."""
    quitting: bool = False
    """Whether the worker was told to end, or killed because nobody needs it."""

    @property
    def silent_s(self) -> float:
        """For how long the worker has said nothing."""
        return time.monotonic() - self.heard_monotonic_s

    @property
    def state(self) -> AgentState:
        """What the agent is to others."""
        if self.notice is not None:
            return AgentState.LEAVING
        if not self.ready:
            return AgentState.STARTING
        return AgentState.TRAINING if self.worker.revision is not None else AgentState.STANDBY

    def is_free(self, worker_id: str, *, saves: bool) -> bool:
        """Whether the newest plan needs nothing of the worker any more, so that it may end.

        Args:
            worker_id: the worker's.
            saves: whether there is a place to save to.
        """
        plan = self.plan
        if plan is None:
            return True
        if plan.reason is PlanReason.FINISH:
            return False  # the job ends at any moment: stay, and vouch for what was saved
        if plan.layout is None and not saves and self.worker.holding is not None:
            return False  # training pauses, and nothing but this worker keeps what it holds
        # Where there is a place to save it, a worker has obeyed once its state is saved.
        return self.worker.idle_revision >= plan.revision and worker_id not in plan.workers

    def told_of_worker(self, worker_id: str, pid: int) -> WorkerInfo:
        """What the board is told of the worker."""
        return WorkerInfo(
            id=worker_id,
            pid=pid,
            ready=self.ready,
            revision=self.worker.revision,
            idle_revision=self.worker.idle_revision,
            broken_revision=self.worker.broken_revision,
            holding=self.worker.holding,
            saved=self.worker.saved,
        )
