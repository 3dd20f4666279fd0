"""The supervisor: an agent's first process, which speaks to the board for its worker.

It is on the board before its worker has imported torch, holds the lease, passes plans down and
reports up, takes SIGTERM and its cloud's word as notices, and ends with its worker: an agent lives
and dies as one, and what replaces it is a new incarnation.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from parcae_agent.knowledge import Knowledge
from parcae_agent.launch import WorkerProcess
from parcae_agent.link import (
    Advanced,
    Happened,
    Measured,
    MeetingPlace,
    Message,
    Ping,
    PlanNews,
    Pong,
    Quit,
    Ready,
    State,
    UserFailed,
)
from parcae_agent.metrics.answer import AgentFacts
from parcae_agent.metrics.telling import resident_bytes
from parcae_agent.notices.signs import Heard
from parcae_agent.outbox import Outbox
from parcae_agent.pid_one import reap_orphans
from parcae_agent.seat import Seat
from parcae_agent.settings import AgentConfig, ExitCode
from parcae_agent.words import words_on
from parcae_api.board import JobBoard
from parcae_api.board_keys import KeyKind
from parcae_api.board_snapshot import BoardChange
from parcae_api.etcd import EtcdClient
from parcae_api.events import Failed
from parcae_api.log_context import about
from parcae_api.membership import Membership, Notice
from parcae_api.model import Contract
from parcae_api.plan import Plan, Rendezvous
from parcae_api.profile import Profile

_log = logging.getLogger(__name__)
_TICK_SECONDS = 1.0
_EXIT_SECONDS = 5.0
_FLUSH_SECONDS = 60.0
"""How long a failure of the user's code waits for a board that is away: nothing else tells of it,
and without it the job would be tried again and again."""


@dataclass(frozen=True)
class Terminate:
    """SIGTERM came."""


@dataclass(frozen=True)
class _WorkerEnded:
    """The worker's link is closed and its process gone."""

    exit_code: int


News = Message | BoardChange | Terminate | Heard | _WorkerEnded
"""What a supervisor acts on, from five sides."""


class Supervisor:
    """Runs one agent."""

    def __init__(
        self,
        config: AgentConfig,
        incarnation: str,
        worker: WorkerProcess,
        client: EtcdClient,
        error_file: Path,
        news: queue.SimpleQueue[News] | None = None,
    ) -> None:
        """``error_file`` is where the worker leaves word when it ends against its will.

        ``news`` is filled by whoever listens for SIGTERM, and to the cloud.
        """
        self._config = config
        self._incarnation = incarnation
        self._process = worker
        self._error_file = error_file
        self._worker_id = worker_id(incarnation)
        self._board = JobBoard(client, config.namespace, config.job)
        self._seat = Seat(client, self._board, config.lease_seconds)
        self._outbox = Outbox()
        self._news: queue.SimpleQueue[News] = news or queue.SimpleQueue()
        self._known = Knowledge()
        self._ended = threading.Event()

    def facts(self) -> AgentFacts:
        """What is known now, for Prometheus. From any thread; waits for nothing."""
        known = self._known
        plan, notice = known.plan, known.notice
        return AgentFacts(
            namespace=self._config.namespace,
            job=self._config.job,
            state=known.state,
            plan_revision=plan.revision if plan else 0,
            deadline_unix_s=notice.deadline_unix_s if notice else None,
            has_hint=known.hint is not None,
            board_up=self._seat.is_taken,
            unsent_writes=self._outbox.num_waiting,
            silent_s=known.silent_s,
            host_bytes=None if self._ended.is_set() else resident_bytes(self._process.pid),
        )

    def run(self) -> ExitCode:
        """Serve until the worker has ended.

        Returns:
            Why.
        """
        self._publish()
        listener = threading.Thread(target=self._listen, name="parcae-link", daemon=True)
        listener.start()
        reaper = threading.Thread(
            target=self._reap, args=(listener,), name="parcae-reaper", daemon=True
        )
        reaper.start()
        watch = self._board.watch(self._news.put, on_error=self._watch_failed)
        exit_code = self._serve()
        # The link was read to its end: a failure that the worker reported is known by now.
        watch.close()
        return self._end(exit_code)

    def _serve(self) -> int:
        """Act on news, and tick in between, until the worker has ended; its exit code."""
        ticked_s = time.monotonic()
        while True:
            left_s = ticked_s + _TICK_SECONDS - time.monotonic()
            try:
                news = self._news.get(timeout=left_s) if left_s > 0 else self._news.get_nowait()
            except queue.Empty:
                news = None
            if isinstance(news, _WorkerEnded):
                return news.exit_code
            if news is not None:
                self._handle(news)
                self._maybe_quit()
            # By the clock: a job that trains fast never lets the queue run empty.
            if (now_s := time.monotonic()) >= ticked_s + _TICK_SECONDS:
                self._tick(now_s - ticked_s)
                ticked_s = now_s

    def _handle(self, news: News) -> None:
        known = self._known
        match news:
            case BoardChange(model=Plan() as plan):
                if known.plan is None or plan.revision > known.plan.revision:
                    known.plan = plan
                    self._tell(PlanNews(plan=plan))
                    with about(revision=plan.revision):
                        _log.info("plan: %s", words_on(plan, self._worker_id))
            case BoardChange(kind=KeyKind.PLAN, model=None):
                known.plan = None  # the job is deleted: nobody needs this worker any more
            case BoardChange(model=Rendezvous() as place):
                if place.revision >= (known.plan.revision if known.plan else 0):
                    self._tell(MeetingPlace(rendezvous=place))
            case Ready(profile=profile):
                known.ready, known.profile = True, profile
                self._publish()
                self._outbox.append(self._unless_known(profile))
            case State():
                saved = news.saved or known.worker.saved
                known.worker = news.model_copy(update={"saved": saved})
                self._publish()
            case MeetingPlace(rendezvous=place):
                self._outbox.append(lambda: self._board.open_epoch(place))
            case Advanced(progress=progress):
                self._outbox.replace("progress", lambda: self._board.put_progress(progress))
            case Measured(profile=measured):
                known.profile = measured
                self._outbox.replace("profile", lambda: self._board.put_profile(measured))
            case Happened(event=event):
                self._outbox.append(lambda: self._board.add_event(event))
            case UserFailed(failure=failure):
                self._take_failure(failure)
            case Terminate():
                deadline_s = time.time() + self._config.grace_seconds
                self._take_notice(Notice(deadline_unix_s=deadline_s, source="sigterm"))
            case Heard(notice=notice, hint=hint):
                if hint != known.hint:
                    known.hint = hint
                    self._publish()
                if notice is not None:
                    self._take_notice(notice)
        if isinstance(news, Pong | Ready | State | Advanced):
            known.heard_monotonic_s = time.monotonic()

    def _unless_known(self, profile: Profile) -> Callable[[], object]:
        """Write the model's outline, unless a measured one is there already."""

        def write() -> None:
            if self._board.profile() is None:
                self._board.put_profile(profile)

        return write

    def _take_notice(self, notice: Notice) -> None:
        """Notices stay; of several, the one that leaves the least time counts."""
        known = self._known
        if known.notice is None or notice.deadline_unix_s < known.notice.deadline_unix_s:
            left_s = notice.deadline_unix_s - time.time()
            _log.info("notice by %s: this instance goes in %.0f s", notice.source, left_s)
            known.notice = notice
            self._publish()

    def _take_failure(self, failure: Failed) -> None:
        self._known.failure = failure
        self._outbox.replace("failure", lambda: self._board.put_failure(failure))

    def _maybe_quit(self) -> None:
        """After a notice: end the worker once nobody needs it any more."""
        known = self._known
        if known.notice is None or known.quitting:
            return
        if not known.ready:
            # It holds nothing, and cannot hear before it has loaded the user's code.
            known.quitting = True
            self._process.kill()
        elif known.is_free(self._worker_id, saves=self._config.checkpoints is not None):
            known.quitting = True
            with about(revision=known.plan.revision if known.plan else None):
                _log.info("nobody needs this worker any more: it ends")
            self._tell(Quit())

    def _tell(self, message: Contract) -> None:
        """Send to the worker; one that does not even take a message is as good as dead."""
        if not self._process.link.send(message):
            self._process.kill()

    def _tick(self, since_s: float) -> None:
        """Once a second: is the worker alive, and are we still on the board?"""
        known = self._known
        reap_orphans(self._process.pid)
        slept = since_s > 2 * _TICK_SECONDS
        if known.ready:
            if slept:  # and so may the worker have: ask it before it is judged
                known.heard_monotonic_s = time.monotonic()
            if (silent_s := known.silent_s) > self._config.worker_timeout_seconds:
                _log.warning("the worker has been silent for %.1f s; killing it", silent_s)
                self._process.kill()
                return
            self._tell(Ping())
        if self._seat.is_lost or slept:
            self._publish()
            if known.profile is not None:  # the board may have lost more than our lease
                self._outbox.append(self._unless_known(known.profile))

    def _publish(self) -> None:
        membership = self._membership()
        self._outbox.replace("membership", lambda: self._seat.write(membership))

    def _membership(self) -> Membership:
        known, config = self._known, self._config
        return Membership(
            incarnation=self._incarnation,
            pod=config.pod,
            node=config.node,
            node_uid=config.node_uid,
            address=config.address,
            state=known.state,
            workers=(known.told_of_worker(self._worker_id, self._process.pid),),
            notice=known.notice,
            hint=known.hint,
            pid=os.getpid(),
        )

    def _listen(self) -> None:
        """Pass on what the worker says until it is gone."""
        try:
            for message in self._process.link.messages():
                self._news.put(message)
        except ValueError as error:
            _log.warning("the worker's last message was cut short: %s", error)
        # It closed its link, so it is about to end, and its exit code will say why.
        if not self._ended.wait(_EXIT_SECONDS):
            self._process.kill()

    def _reap(self, listener: threading.Thread) -> None:
        """Say that the worker has ended, after all that it said.

        Its link alone does not tell: processes that the user's code forked may hold it open.
        """
        exit_code = self._process.wait()
        self._ended.set()
        self._process.hang_up()
        listener.join()
        self._process.link.close()
        self._news.put(_WorkerEnded(exit_code))

    def _watch_failed(self, error: Exception) -> None:
        _log.error("the board refuses to be watched: %s", error)
        self._process.kill()

    def _end(self, exit_code: int) -> ExitCode:
        known = self._known
        if exit_code > 0 and known.failure is None and not known.quitting:
            self._report_crash(exit_code)
        if known.failure is not None and not self._outbox.flush(_FLUSH_SECONDS):
            _log.error("the board is away: nobody hears that the job failed: %s", known.failure)
        self._outbox.close()
        self._seat.leave()
        if known.failure is not None:
            return ExitCode.USER_CODE
        if known.quitting:
            return ExitCode.DONE
        _log.warning("the worker ended with exit code %d", exit_code)
        return ExitCode.WORKER_LOST

    def _last_words(self) -> str:
        """What torch's ``record`` wrote down, if the worker came as far as that."""
        try:
            report = json.loads(self._error_file.read_text(encoding="utf-8"))
            return str(report["message"]["message"])
        except (OSError, ValueError, KeyError, TypeError):
            return "what it printed says why"

    def _report_crash(self, exit_code: int) -> None:
        """The worker ended by itself: its successors would, too. A lost instance is a signal's."""
        failure = Failed(
            at_unix_s=time.time(),
            worker=self._worker_id,
            step=self._known.worker.holding.step if self._known.worker.holding else None,
            message=f"the worker of {self._config.pod} ended by itself with exit code {exit_code}: "
            f"{self._last_words()}",
        )
        self._take_failure(failure)


def new_incarnation(pod: str) -> str:
    """An id that no other start of any agent has."""
    return f"{pod}-{secrets.token_hex(4)}"


def worker_id(incarnation: str) -> str:
    """The id of an agent's only worker."""
    return f"{incarnation}/0"
