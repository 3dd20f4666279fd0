"""What the operator last saw of a job's board, kept up to date by one watch. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from parcae_api.board_keys import KeyKind
from parcae_api.board_snapshot import BoardChange, BoardReset
from parcae_api.events import AnyEvent, Failed
from parcae_api.leader import Leader
from parcae_api.membership import Membership
from parcae_api.model import Contract
from parcae_api.plan import Plan
from parcae_api.profile import Profile
from parcae_api.progress import Progress

LATELY_S = 120.0
"""An operator has started by then, and clocks of nodes agree to less."""


@dataclass(frozen=True)
class BoardState:
    """The board at one moment."""

    agents: dict[str, Membership] = field(default_factory=dict)
    returned: frozenset[str] = frozenset()
    """Members of the plan's grid that came to the board after the plan, and lately: it had lost
    them."""
    plan: Plan | None = None
    profile: Profile | None = None
    progress: Progress | None = None
    failures: tuple[Failed, ...] = ()
    leader: Leader | None = None
    """The operator that drives the job."""
    broken_since_unix_s: float | None = None
    """When a member of the current plan first said that its revision is broken."""


class BoardView:
    """Takes changes in and gives out states."""

    def __init__(
        self,
        *,
        on_change: Callable[[KeyKind, Contract | None], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``on_change`` is called after each change, from the watch's thread."""
        self._on_change = on_change
        self._clock = clock
        self._lock = threading.Lock()
        self._agents: dict[str, Membership] = {}
        self._came: dict[str, int] = {}
        """The store's revision at which each agent came to the board."""
        self._planned: int | None = None
        """The one by which the plan was written; None for a plan of this operator's own."""
        self._failures: dict[str, Failed] = {}
        self._plan: Plan | None = None
        self._profile: Profile | None = None
        self._progress: Progress | None = None
        self._leader: Leader | None = None
        self._broken_since_unix_s: float | None = None
        self._filled = False

    @property
    def is_filled(self) -> bool:
        """Whether the board has been read whole: half of it would tell of a broken job."""
        return self._filled

    def accept_all(self, reset: BoardReset) -> None:
        """Take in the whole board, at the start or after a gap."""
        with self._lock:
            if self._planned is not None and reset.snapshot.revision < self._planned:
                self._planned = None  # another store, whose numbers are not comparable
            for change in reset.changes:
                self._store(change)
            self._update_broken()
            self._filled = True
        for change in reset.changes:
            self._on_change(change.kind, change.model)

    def accept(self, change: BoardChange) -> None:
        """Take one change in."""
        with self._lock:
            self._store(change)
            self._update_broken()
        self._on_change(change.kind, change.model)

    def published(self, plan: Plan) -> None:
        """This operator has just published a plan; do not wait for the watch to say so."""
        with self._lock:
            self._take_plan(plan)
            self._update_broken()

    def state(self) -> BoardState:
        """How things stand."""
        with self._lock:
            return BoardState(
                agents=dict(self._agents),
                returned=self._returned(),
                plan=self._plan,
                profile=self._profile,
                progress=self._progress,
                failures=tuple(self._failures.values()),
                leader=self._leader,
                broken_since_unix_s=self._broken_since_unix_s,
            )

    def _returned(self) -> frozenset[str]:
        if self._plan is None or self._planned is None:
            return frozenset()
        members = {worker.partition("/")[0] for worker in self._plan.workers}
        late = {name for name in members if self._came.get(name, 0) > self._planned}
        return frozenset(name for name in late if self._is_lately(self._agents[name]))

    def _is_lately(self, agent: Membership) -> bool:
        since_unix_s = agent.on_board_since_unix_s
        return since_unix_s is None or abs(self._clock() - since_unix_s) <= LATELY_S

    def _store(self, change: BoardChange) -> None:
        match change.kind, change.model:
            case KeyKind.AGENT, None:
                self._agents.pop(change.name, None)
                self._came.pop(change.name, None)
            case KeyKind.AGENT, Membership() as membership:
                self._agents[change.name] = membership
                self._came[change.name] = change.created_revision
            case KeyKind.FAILURE, Failed() as failed:
                self._failures[change.name] = failed
            case KeyKind.PLAN, Plan() as plan:
                self._take_plan(plan, change.revision)
            case KeyKind.PROFILE, Profile() as profile:
                self._profile = profile
            case KeyKind.PROGRESS, Progress() as progress:
                self._progress = progress
            case KeyKind.LEADER, (Leader() | None) as leader:
                self._leader = leader

    def _take_plan(self, plan: Plan, written: int | None = None) -> None:
        if self._plan is None or plan.revision > self._plan.revision:
            self._plan, self._planned = plan, written
            self._broken_since_unix_s = None

    def _update_broken(self) -> None:
        plan = self._plan
        if plan is None or plan.layout is None or self._broken_since_unix_s is not None:
            return
        members = set(plan.members)
        broken = any(
            worker.id in members and worker.broken_revision >= plan.revision
            for agent in self._agents.values()
            for worker in agent.workers
        )
        if broken:
            self._broken_since_unix_s = self._clock()


EventSink = Callable[[AnyEvent], None]
"""Where the operator reports what happened."""
