"""The edge of the controller: observe, decide, act; again whenever anything may have changed.

The same loop serves a real cluster and a local one; only the ``Cluster`` differs. Losing the board
or the operator stops decisions, never training: on return the loop adopts what it finds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, cast

from parcae_api.board import Entry, JobBoard
from parcae_api.board_keys import KeyKind
from parcae_api.errors import BoardError
from parcae_api.events import AnyEvent, Migration
from parcae_api.job import ParcaeJob
from parcae_api.job_status import JobStatus
from parcae_api.log_context import about
from parcae_api.model import Contract
from parcae_api.plan import Plan
from parcae_api.planning import Planner
from parcae_api.profile import Profile
from parcae_api.progress import Progress
from parcae_operator.actions import (
    Complete,
    CreatePods,
    DeletePods,
    Fail,
    Hold,
    PublishPlan,
    SetStatus,
)
from parcae_operator.attempts import unreported
from parcae_operator.attention import Attention
from parcae_operator.availability import Availability
from parcae_operator.claim import Claim
from parcae_operator.controller import decide
from parcae_operator.explain import planned
from parcae_operator.joining import Joiners
from parcae_operator.learning import Learnt
from parcae_operator.news import News
from parcae_operator.observation import (
    Observation,
    Pod,
    Trouble,
    is_formed,
    staying_instances,
    staying_workers,
)
from parcae_operator.replan import next_revision
from parcae_operator.reunion import Reunion
from parcae_operator.view import BoardState, BoardView, EventSink

_log = logging.getLogger(__name__)
_RESYNC_SECONDS, _CALM_SECONDS = 0.5, 2.0
"""Between two looks that nothing has caused. Calm: all train as planned, so only time can pass."""
_CALM_PER_INTERVAL = 30
_SETTLE_SECONDS = 0.02
"""Notices and losses of one moment arrive within milliseconds: one plan answers them all."""
_EVENTS_KEPT = 200
"""On the board; files and Kubernetes keep the rest."""

End = Complete | Fail


class Cluster(Protocol):
    """Where pods run."""

    def pods(self) -> tuple[Pod, ...]:
        """All pods of the job that have not ended, oldest first."""
        ...

    def create_pods(self, count: int) -> None:
        """Ask for more."""
        ...

    def delete_pods(self, names: tuple[str, ...]) -> None:
        """Give these back: they get a notice, and end when their state is out."""
        ...


class JobLoop:
    """Drives one job to its end."""

    def __init__(
        self,
        job: ParcaeJob,
        board: JobBoard,
        cluster: Cluster,
        planner: Planner,
        *,
        report: EventSink,
        interval_s: float | None = None,
        share_a_machine: bool = False,
        claim: Claim | None = None,
        troubles: Callable[[], tuple[Trouble, ...]] = tuple,
        on_turn: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Set up.

        Args:
            job: What to drive.
            board: Its board.
            cluster: Where its pods run.
            planner: Chooses layouts.
            report: Takes what happens.
            interval_s: The planning interval; without one no history is kept.
            share_a_machine: All workers run on one machine. What a configuration's steps take there
                says nothing of instances of their own: speeds are then predicted from layer times.
            claim: Where several operators may be at work: only the one that holds it acts.
            troubles: Of what this operator leans on.
            on_turn: Called after each look, from the loop's thread: the status may be another.
            clock: Unix time in seconds.
        """
        self._job = job
        self._board = board
        self._cluster = cluster
        self._planner = planner
        self._report = report
        self._clock = clock
        self._started_unix_s = clock()
        self._wake = threading.Event()
        self._view = BoardView(on_change=self._changed, clock=clock)
        self._entry: Entry[Plan] | None = None
        self._finish = ""
        self._stopped = False
        self._watch_error: Exception | None = None
        self._trouble = ""
        self._progress_revision = 0
        self._interval_s = interval_s
        self._share_a_machine = share_a_machine
        self._claim = claim
        self._troubles = troubles
        self._on_turn = on_turn
        self.leads = claim is None
        """Whether this operator drives the job."""
        self._availability: Availability | None = None
        self._learnt = Learnt()
        self._attention = Attention(interval_s)
        self._reunion = Reunion()
        self._joiners = Joiners()
        self._rest_s = _RESYNC_SECONDS
        self._news = News(self._report)
        self.status = JobStatus()
        """As of the last look; without conditions before the first."""

    def wake(self) -> None:
        """Something may have changed: look at once."""
        self._wake.set()

    def update(self, job: ParcaeJob) -> None:
        """The user has edited the job: go by this spec from now on."""
        self._job = job
        self._wake.set()

    def finish(self, why: str) -> None:
        """End the job at the next step's end."""
        self._finish = why
        self._wake.set()

    def stop(self) -> None:
        """Leave the loop; training goes on."""
        self._stopped = True
        self._wake.set()

    @property
    def board_state(self) -> BoardState:
        """The board as last seen."""
        return self._view.state()

    @property
    def profile(self) -> Profile | None:
        """The model's, with the costs of changes that were measured."""
        profile = self._view.state().profile
        return self._learnt.corrected(profile) if profile else None

    def run(self) -> End | None:
        """Run until the job has ended; None when stopped before.

        Raises:
            Exception: the board refuses to be watched, or there is a mistake in this program.
        """
        with about(namespace=self._job.metadata.namespace, job=self._job.metadata.name):
            return self._watch_and_turn()

    def _watch_and_turn(self) -> End | None:
        watch = self._board.watch(
            self._view.accept, on_error=self._watch_failed, on_reset=self._view.accept_all
        )
        try:
            while not self._stopped:
                if self._watch_error is not None:
                    raise self._watch_error
                end = self._turn() if self._view.is_filled and self._may_act() else None
                self._on_turn()
                if end is not None:
                    return end
                self._wake.wait(self._rest_s)
                # Not a poll: what arrives within this time is decided on together.
                if self._wake.is_set():
                    time.sleep(_SETTLE_SECONDS)
                self._wake.clear()
            return None
        finally:
            watch.close()

    def _may_act(self) -> bool:
        if self._claim is not None:
            self.leads = self._claim.holds(self._board, self._view.state().leader)
        if not self.leads:
            self._rest_s = _RESYNC_SECONDS
        return self.leads

    def _turn(self) -> End | None:
        seen = self._attention.on(self._joiners.on(self._observe()))
        self._news.saw(seen)
        self._write_crashes_down(seen)
        with about(revision=next_revision(seen)):
            end = self._act(seen)
        self._rest_s = self._next_look_s(seen)
        return end

    def _act(self, seen: Observation) -> End | None:
        actions = decide(seen, self._planner)
        held = next((action for action in actions if isinstance(action, Hold)), None)
        if held is not None or not seen.more_of_the_same:
            self._hold(seen, held)
        for action in actions:
            match action:
                case SetStatus(status=status):
                    self.status = status
                case CreatePods(count=count):
                    self._cluster.create_pods(count)
                case DeletePods(names=names):
                    self._news.gave_back(names)
                    self._cluster.delete_pods(names)
                case PublishPlan() as published:
                    self._publish(published, seen)
                case Complete() | Fail():
                    return action
        return None

    def _hold(self, seen: Observation, held: Hold | None) -> None:
        """Say why a larger layout waits, and look again when it is time; or none does."""
        is_first = self._joiners.decided(seen, held)
        if held is not None:
            self._attention.remind(held.until_unix_s)
            if is_first:
                _log.info(held.why)

    def _next_look_s(self, seen: Observation) -> float:
        """Seconds to the next look; what changes on the board or in the cluster wakes it before."""
        due_s = max(_SETTLE_SECONDS, self._attention.due_unix_s - self._clock())
        if self._interval_s is None or not (seen.more_of_the_same and is_formed(seen)):
            return min(_RESYNC_SECONDS, due_s)
        calm_s = min(_CALM_SECONDS, self._interval_s / _CALM_PER_INTERVAL)
        return min(max(_RESYNC_SECONDS, calm_s), due_s)

    def _observe(self) -> Observation:
        state = self._view.state()
        self._learnt.saw_progress(state.progress, state.plan)
        looked = Observation(
            now_unix_s=self._clock(),
            started_unix_s=self._started_unix_s,
            job=self._job,
            pods=self._cluster.pods(),
            agents=state.agents,
            returned=state.returned,
            plan=state.plan,
            profile=self.profile,
            progress=state.progress,
            failures=state.failures,
            finish=self._finish,
            broken_since_unix_s=state.broken_since_unix_s,
            step_seconds={} if self._share_a_machine else self._learnt.step_seconds,
            troubles=self._troubles(),
        )
        seen = self._reunion.on(looked)
        return self._with_history(seen) if self._interval_s else seen

    def _with_history(self, seen: Observation) -> Observation:
        """Count the instances; an interval that has ended is kept on the board."""
        assert self._interval_s is not None
        try:
            if self._availability is None:
                before = self._board.history()
                self._availability = Availability(self._interval_s, seen.now_unix_s, before)
            # Instances that are only not heard of are no losses to learn from.
            ended = not seen.awaited and self._availability.saw(
                seen.now_unix_s, staying_instances(seen)
            )
            if ended:
                self._board.put_history(self._availability.history)
        except (BoardError, ValueError) as error:
            _log.info("the history is not on the board: %s", error)
            if self._availability is None:
                return seen
            ended = False
        return replace(seen, history=self._availability.history, interval_ended=ended)

    def _write_crashes_down(self, seen: Observation) -> None:
        """So that they count when their pods' objects are gone."""
        try:
            for failed in unreported(seen):
                self._board.put_failure(failed)
        except BoardError as error:
            _log.info("a crash is not on the board: %s", error)

    def _publish(self, action: PublishPlan, seen: Observation) -> None:
        """Publish by compare-and-swap; on any doubt the next turn looks again."""
        plan = action.plan
        try:
            entry = self._swap(plan, seen)
        except (BoardError, ValueError) as error:
            self._entry = None
            self._warn(f"revision {plan.revision} was not published: {error}")
            self._attention.remind(seen.now_unix_s + _RESYNC_SECONDS)
            return
        if entry is None:
            _log.info("another plan than the one decided on is there; looking again")
            self._attention.remind(seen.now_unix_s + _RESYNC_SECONDS)
            return
        self._trouble = ""
        at = plan.layout.configuration if plan.layout else "paused"
        _log.info("plan published: %s (%s): %s", at, plan.reason, plan.why)
        self._view.published(plan)
        self._report(planned(action, num_staying=len(staying_workers(seen))))
        self._prune(plan)

    def _swap(self, plan: Plan, seen: Observation) -> Entry[Plan] | None:
        """The new entry; None when the plan on the board is not the one decided from."""
        if self._entry is None or self._entry.model != seen.plan:
            self._entry = self._board.plan()
        self._entry = self._board.publish_plan(plan, self._entry)
        return self._entry

    def _prune(self, plan: Plan) -> None:
        """Keep the board bounded. Whoever still looks for an old revision has a newer one now."""
        try:
            self._board.prune_epochs(plan.revision)
            self._board.prune_events(_EVENTS_KEPT)
        except BoardError as error:
            _log.info("the board was not tidied up: %s", error)

    def _warn(self, trouble: str) -> None:
        """Once, however often it is tried again."""
        if trouble != self._trouble:
            _log.warning(trouble)
        self._trouble = trouble

    def _changed(self, kind: KeyKind, model: Contract | None) -> None:
        """Wake for what can change a decision, and pass on the events of others."""
        if kind is KeyKind.EVENT and model is not None:
            if isinstance(model, Migration):
                self._learnt.saw_migration(model)
            self._report(cast(AnyEvent, model))
            return
        if kind in (KeyKind.AGENT, KeyKind.FAILURE, KeyKind.PROFILE, KeyKind.LEADER):
            self._wake.set()
        elif isinstance(model, Progress) and model.revision != self._progress_revision:
            # Progress comes several times a second; what matters is that an epoch has formed.
            self._progress_revision = model.revision
            self._wake.set()

    def _watch_failed(self, error: Exception) -> None:
        self._watch_error = error
        self._wake.set()
