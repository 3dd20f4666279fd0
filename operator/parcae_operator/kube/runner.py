"""One job from the moment it is seen to the moment it is deleted.

A task on the operator's event loop: it follows the object (spec edits, suspension, deletion), keeps
a thread that drives the job, writes the status, and tidies up at the end. It can be dropped at any
moment: another one, in another operator, goes on from what the API server and the board hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from typing import Any

from parcae_api.errors import BoardError, InputError
from parcae_api.events import AnyEvent, NoticeGiven
from parcae_api.job import ParcaeJob
from parcae_api.job_status import JobStatus
from parcae_api.log_context import about
from parcae_operator.kube.crier import Crier
from parcae_operator.kube.errors import ClusterError, NotFound
from parcae_operator.kube.job_thread import JobThread, job_on_board
from parcae_operator.kube.labels import JobKey, job_of
from parcae_operator.kube.objects import dump_status, identity, is_older, read_job, read_status
from parcae_operator.kube.pace import Pace
from parcae_operator.kube.services import Services
from parcae_operator.kube.status_writer import StatusWriter
from parcae_operator.kube.tidy import forget_job, give_pods_back, has_outlived
from parcae_operator.metrics.facts import JobFacts
from parcae_operator.observation import BOARD_AWAY, Trouble
from parcae_operator.status import (
    ended,
    in_trouble,
    is_over,
    refused,
    timestamp,
    with_transitions,
)
from parcae_operator.tally import Tally, with_furthest

_log = logging.getLogger(__name__)

Object = dict[str, Any]
_RESYNC_S = 1.0
_OVER_RESYNC_S = 5.0
"""Of a job that is over: nothing but its time to be deleted, and its pods' ends, is waited for."""


class JobRunner:
    """Follows one job, by its UID.

    Args:
        body: The object as first seen.
        services: The operator's.
    """

    def __init__(self, body: Object, services: Services) -> None:
        self.key: JobKey = job_of(body)
        self.uid, self._generation = identity(body)
        self._services = services
        self._body = body
        self._acted_on = -1
        self._job: ParcaeJob | None = None
        self._refusal: JobStatus | None = None
        self._slip: Trouble | None = None
        """What is wrong with the newest edit."""
        self._thread: JobThread | None = None
        self._tally = Tally.of(read_status(body))
        self._tally_lock = threading.Lock()
        self._writer = StatusWriter(read_status(body))
        self._crier = Crier(services)
        self.since_s = time.monotonic()
        """When this job was first seen, by ``time.monotonic``."""
        self._wake = asyncio.Event()
        self._pace = Pace()
        self._deleted = False
        self._task = asyncio.create_task(self._run(), name=f"job {self.key}")

    # What the registry says.

    def saw(self, body: Object) -> None:
        """The object, as it is now; a list that was slow may bring what is older."""
        if not is_older(body, self._body):
            self._body = body
            self._wake.set()

    def wake(self) -> None:
        """Its pods or their nodes have changed. From any thread."""
        thread = self._thread
        if thread is not None:
            thread.wake()
        with contextlib.suppress(RuntimeError):  # the event loop is closed: the operator ends
            self._services.loop.call_soon_threadsafe(self._wake.set)

    def listed(self, asked_s: float) -> None:
        """A complete list of pods was taken in."""
        if self._thread is not None:
            self._thread.cluster.listed(asked_s)

    def deleted(self) -> None:
        """The object is gone: tidy up what the API server does not."""
        self._deleted = True
        if self._thread is not None:
            self._thread.stop()  # at once: another job of that name may be next
        self._wake.set()

    def facts(self) -> JobFacts | None:
        """What metrics tell of it now; None while another operator does. From any thread."""
        thread, written = self._thread, self._writer.written
        if thread is not None and thread.is_anothers and not is_over(written):
            return None
        now, job = written, self._job
        if thread is not None and thread.end is None and self._is_told_by(thread):
            with self._tally_lock:
                now = self._tally.onto(thread.loop.status, thread.planner.newest)
        return JobFacts(
            namespace=self.key.namespace,
            name=self.key.name,
            now=now,
            written=written,
            instances=job.spec.instances if job is not None else None,
            answer=thread.planner.newest if thread is not None else None,
            checkpoint_unix_s=thread.checkpoint_unix_s if thread is not None else None,
        )

    @property
    def is_over(self) -> bool:
        """Whether it has nothing more to do."""
        return self._task.done()

    async def close(self) -> None:
        """Leave the job alone; training goes on."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._stop_thread()

    # The task.

    async def _run(self) -> None:
        with about(namespace=self.key.namespace, job=self.key.name):
            await self._follow()

    async def _follow(self) -> None:
        while not self._deleted:
            try:
                await self._turn()
                self._pace.succeeded()
            except NotFound:
                _log.info("%s is being deleted", self.key)
            except ClusterError as error:
                _log.warning("%s: %s", self.key, error)
                retry_after_s = getattr(error, "retry_after_s", None)
                self._pace.failed(retry_after_s)
            except Exception:
                _log.exception("%s: a turn failed", self.key)
                self._pace.failed()
            await self._rest()
        cluster = self._thread.cluster if self._thread is not None else None
        await self._stop_thread()
        await forget_job(self.key, self.uid, cluster, self._services)

    async def _rest(self) -> None:
        """Until something happens; a server that does not answer is left alone meanwhile."""
        with contextlib.suppress(TimeoutError):
            resync_s = _OVER_RESYNC_S if is_over(self._writer.written) else _RESYNC_S
            async with asyncio.timeout(self._pace.left_s or resync_s):
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    if self._deleted or self._pace.may_go():
                        return

    async def _turn(self) -> None:
        if is_over(self._writer.written):
            await self._after_the_end()
            return
        try:
            await self._read_spec()
        except BoardError as error:
            await self._write(in_trouble(self._writer.written, BOARD_AWAY, str(error)))
            return
        if self._refusal is not None:
            await self._write(self._tally.onto(self._refusal))
        else:
            self._keep_thread()
            await self._write_progress()
        await self._crier.send()

    async def _read_spec(self) -> None:
        """Act on what the user has written, once per edit.

        An edit that cannot work leaves the last spec in force that could: training must not be
        without anybody who answers notices because of a slip.

        Raises:
            BoardError: the board is away, and with it the last spec that could.
        """
        _, generation = identity(self._body)
        if generation == self._acted_on:
            return
        try:
            self._job = read_job(self._body)
        except InputError as error:
            self._job = self._job or await job_on_board(self.key, self.uid, self._services)
            self._acted_on = generation
            self._refusal = (
                None
                if self._job is not None
                else refused(self._writer.written, generation, str(error))
            )
            self._slip = Trouble("InvalidSpec", f"{error}; the spec before this edit is in force")
            return
        self._acted_on = generation
        self._refusal = self._slip = None
        if self._thread is not None:
            self._thread.update(self._job)

    def _keep_thread(self) -> None:
        assert self._job is not None
        if self._thread is None:
            self._thread = JobThread(
                self._job,
                self._services,
                report=self._report,
                on_turn=self._turned,
                slip=lambda: self._slip,
            )

    async def _write_progress(self) -> None:
        thread, job = self._thread, self._job
        assert thread is not None
        assert job is not None
        with self._tally_lock:
            tally = self._tally
        if thread.end is not None:
            status = ended(tally.onto(thread.loop.status), thread.end)
            status = status.model_copy(update={"completion_time": timestamp(time.time())})
            await self._write(status)
            return
        troubles = thread.troubles()
        if self._is_told_by(thread):
            await self._write(tally.onto(thread.loop.status, thread.planner.newest))
            return
        self._stand_by()
        if troubles:
            # Nobody can drive the job while the board is away; say so.
            trouble = troubles[0]
            await self._write(in_trouble(self._writer.written, trouble.reason, trouble.message))

    @staticmethod
    def _is_told_by(thread: JobThread) -> bool:
        """Whether it drives the job, and has looked."""
        return thread.loop.leads and bool(thread.loop.status.conditions)

    def _stand_by(self) -> None:
        """Another operator drives the job: should this one have to go on, then from its words."""
        written = read_status(self._body)
        with self._tally_lock:
            self._tally = Tally.of(written)
        self._writer.wrote(written)

    async def _write(self, status: JobStatus) -> None:
        before = self._writer.written
        acted_on = max(self._acted_on, before.observed_generation)
        status = with_transitions(status, before, acted_on, time.time())
        status = with_furthest(status, before)
        if not self._writer.is_due(status):
            return
        body = await self._services.api.write_status(
            self.key.namespace, self.key.name, self.uid, dump_status(status)
        )
        self._writer.wrote(status)
        if body and not is_older(body, self._body):
            self._body = body  # before the watch brings it: what stands by goes on from there
        if self._job is not None:
            self._crier.flipped(self._job, before, status)

    async def _after_the_end(self) -> None:
        """The job is over: give its pods back, and delete it when its time has come."""
        await self._crier.send()
        with contextlib.suppress(BoardError):
            await self._read_spec()
        if self._job is None:
            return
        await self._stop_thread(keep=True)
        cluster = self._thread.cluster if self._thread is not None else None
        await give_pods_back(self._job, cluster, self._services)
        if has_outlived(self._job, self._writer.written):
            await self._services.api.delete_job(self.key.namespace, self.key.name, self.uid)

    async def _stop_thread(self, *, keep: bool = False) -> None:
        thread = self._thread
        if thread is None:
            return
        thread.stop()
        await asyncio.to_thread(thread.join)
        if not keep:
            self._thread = None

    # From the job's thread.

    def _report(self, event: AnyEvent) -> None:
        with self._tally_lock:
            self._tally = self._tally.saw(event)
        job, thread = self._job, self._thread
        # Otherwise the operator that drives the job tells it.
        if job is not None and thread is not None and thread.loop.leads:
            self._crier.happened(job, event)
            if isinstance(event, NoticeGiven):
                self._services.meter.noticed(event)

    def _turned(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._services.loop.call_soon_threadsafe(self._wake.set)
