"""The thread on which one job's loop runs, from the board's first answer to the job's end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable

from parcae_api.board import JobBoard
from parcae_api.errors import BoardError, ParcaeError
from parcae_api.events import AnyEvent
from parcae_api.job import ParcaeJob
from parcae_api.log_context import about
from parcae_operator.fallback import FallbackPlanner
from parcae_operator.kube.errors import ClusterError, Forbidden
from parcae_operator.kube.labels import JobKey
from parcae_operator.kube.network_policy import network_policy, policy_name
from parcae_operator.kube.pace import Pace
from parcae_operator.kube.pod_cluster import PodCluster
from parcae_operator.kube.services import Services
from parcae_operator.loop import End, JobLoop
from parcae_operator.metrics.planner import MeteredPlanner
from parcae_operator.observation import BOARD_AWAY, Trouble
from parcae_optimizer.reactive import ReactivePlanner

_log = logging.getLogger(__name__)

_LONG_S = 60.0


async def job_on_board(key: JobKey, uid: str, services: Services) -> ParcaeJob | None:
    """The last spec of this very job that an operator found to work; None where there is none.

    Raises:
        BoardError: the board did not answer.
    """
    board = JobBoard(services.board, key.namespace, key.name)
    job = await asyncio.to_thread(board.job)
    return job if job is not None and job.metadata.uid == uid else None


class JobThread:
    """Drives one job until it ends or is stopped. What fails is tried again, more and more rarely.

    Args:
        job: The job.
        services: The operator's.
        report: Takes what happens; called from several threads.
        on_turn: Called after each look, from this thread.
        slip: What is wrong with the user's newest edit.
    """

    def __init__(
        self,
        job: ParcaeJob,
        services: Services,
        *,
        report: Callable[[AnyEvent], None],
        on_turn: Callable[[], None],
        slip: Callable[[], Trouble | None] = lambda: None,
    ) -> None:
        metadata = job.metadata
        self._job = job
        self._on_board: ParcaeJob | None = None
        self._services = services
        self._on_turn = on_turn
        self._slip = slip
        self._stop = threading.Event()
        self._failure: Trouble | None = None
        self._planner = FallbackPlanner(services.planner, ReactivePlanner())
        self.planner = MeteredPlanner(self._planner, services.meter.planned)
        self.board = JobBoard(services.board, metadata.namespace, metadata.name)
        self.cluster = PodCluster(
            job,
            services.api,
            services.store,
            services.settings,
            services.loop,
            agents=lambda: self.loop.board_state.agents,
            report=report,
        )
        self._report = report
        self.loop = self._new_loop()
        self.end: End | None = None
        """How the job ended; None while it has not."""
        self._thread = threading.Thread(target=self._run, name=f"job-{metadata.name}", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it drives the job."""
        return self._thread.is_alive()

    @property
    def is_anothers(self) -> bool:
        """Whether another operator drives the job, as far as the board was heard."""
        leader = self.loop.board_state.leader
        return leader is not None and leader != self._services.claim.leader

    @property
    def checkpoint_unix_s(self) -> float | None:
        """When the newest complete checkpoint was written; None where none is known of."""
        progress = self.loop.board_state.progress
        return progress.checkpoint_unix_s if progress is not None else None

    def update(self, job: ParcaeJob) -> None:
        """The user has edited the job."""
        self._job = job
        self.cluster.job = job
        self.loop.update(job)

    def wake(self) -> None:
        """Something may have changed."""
        self.loop.wake()

    def stop(self) -> None:
        """Leave the job alone; training goes on. Does not wait."""
        self._stop.set()
        self.loop.stop()

    def join(self) -> None:
        """Wait until it has left the job alone."""
        self._thread.join()

    def troubles(self) -> tuple[Trouble, ...]:
        """What is not as it should be, the worst first."""
        found = [each for each in (self._slip(), self._failure) if each is not None]
        if self._services.claim.board_is_away:
            text = "etcd does not answer; training goes on with the current plan"
            found.append(Trouble(BOARD_AWAY, text))
        if self.cluster.trouble is not None:
            found.append(self.cluster.trouble)
        if self._planner.trouble:
            found.append(Trouble("PlannerUnavailable", self._planner.trouble))
        return tuple(found)

    def _new_loop(self) -> JobLoop:
        return JobLoop(
            self._job,
            self.board,
            self.cluster,
            self.planner,
            report=self._report,
            interval_s=float(self._job.spec.planning.interval_seconds),
            claim=self._services.claim,
            troubles=self.troubles,
            on_turn=self._after_turn,
        )

    def _run(self) -> None:
        metadata = self._job.metadata
        with about(namespace=metadata.namespace, job=metadata.name):
            self._drive()

    def _drive(self) -> None:
        pace = Pace()
        while not self._stop.is_set():
            begun_s = time.monotonic()
            try:
                self._fence_off()
                self._prepare_board()
                self._failure = None
                self.end = self.loop.run()
                break
            except BoardError as error:
                self._failed(BOARD_AWAY, error)
            except ClusterError as error:
                self._failed("ApiServerUnavailable", error)
            except ParcaeError as error:
                self._failed("OperatorError", error)
            except Exception as error:
                _log.exception("%s: the loop failed", self.board.prefix)
                self._failed("OperatorError", error)
            if time.monotonic() - begun_s > _LONG_S:
                pace.succeeded()  # it went well for long: this is another trouble
            pace.failed()
            self._on_turn()
            self._stop.wait(pace.left_s)
            self.loop = self._new_loop()
            self.loop.update(self._job)  # should it have been edited meanwhile
            if self._stop.is_set():
                self.loop.stop()
        self._on_turn()

    def _failed(self, reason: str, error: Exception) -> None:
        trouble = Trouble(reason, f"{error}; it is tried again")
        if trouble != self._failure:
            _log.warning("%s: %s", self.board.prefix, trouble.message)
        self._failure = trouble

    def _fence_off(self) -> None:
        """See that the job's pods have their NetworkPolicy, or none where none is wanted.

        Raises:
            ClusterError: the API server did not take it: agents do not start unprotected.
        """
        api, rules = self._services.api, self._services.settings.network_policy
        if rules is not None:
            self.cluster.call(api.put_network_policy(network_policy(self._job, rules)))
            return
        namespace, name = self._job.metadata.namespace, policy_name(self._job)
        with contextlib.suppress(Forbidden):  # then this account never made one
            self.cluster.call(api.delete_network_policy(namespace, name))

    def _prepare_board(self) -> None:
        """Write the job down; what an earlier job of that name has left goes first.

        Raises:
            BoardError: the board did not answer.
            ClusterError: the API server did not take the Secret.
        """
        if self._services.users is not None:
            secret = self._services.users.admit(self._job)
            self.cluster.call(self._services.api.put_secret(secret))
        before = self.board.job()
        if before is not None and before.metadata.uid != self._job.metadata.uid:
            self.board.clear()
        self._write_job_down()

    def _write_job_down(self) -> None:
        """The last spec that works, should the next edit not, and this operator end."""
        job = self._job
        self.board.put_job(job)
        self._on_board = job

    def _after_turn(self) -> None:
        if self.loop.leads and not self._stop.is_set():
            self.cluster.vanished()
            self.cluster.bury()
            if self._on_board is not self._job:
                with contextlib.suppress(BoardError):  # the next turn tries again
                    self._write_job_down()
        self._on_turn()
