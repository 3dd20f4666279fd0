"""All jobs of the operator: starts and ends their runners, and looks at everything now and then.

Watches tell what changed; a complete list tells what is. No job is touched before the first
complete list of pods and nodes: to an operator that has just started, all would seem to be missing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from parcae_api.errors import BoardError
from parcae_operator.kube.errors import ClusterError
from parcae_operator.kube.labels import JOB, JobKey, job_of
from parcae_operator.kube.objects import identity
from parcae_operator.kube.orphans import clear_orphans, find_boards
from parcae_operator.kube.pace import Pace
from parcae_operator.kube.runner import JobRunner
from parcae_operator.kube.services import Services
from parcae_operator.metrics.facts import JobFacts

_log = logging.getLogger(__name__)

_REMEMBERED_S = 600.0
"""How long a deleted job is known to be so: an answer that was slow may still bring it."""
_UNPROTECTED_S = 5.0
"""The longest between two tries to protect a board that was away."""

Object = dict[str, Any]
Boards = dict[JobKey, str]
Users = dict[str, tuple[JobKey, str]]


class Jobs:
    """The runners by job. Belongs to the event loop; ``wake`` may come from any thread."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._runners: dict[JobKey, JobRunner] = {}
        self._leaving: set[JobRunner] = set()
        self._gone: dict[str, float] = {}
        """UIDs of deleted jobs, and when that was heard of."""
        self._waiting: dict[JobKey, Object] = {}
        """Seen before the first complete list."""
        self._is_ready = False
        self._unprotected = ""
        """Why the board does not ask everybody who they are, though it should."""
        self._nodes_listed_s = float("-inf")
        self.looked_s = time.monotonic()
        """When a complete look was last tried, by ``time.monotonic``: a sign of life."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look at everything now and then."""
        self._task = asyncio.create_task(self._resync(), name="resync")

    async def close(self) -> None:
        """Leave all jobs alone; training goes on."""
        if self._task is not None:
            self._task.cancel()
        runners = [*self._runners.values(), *self._leaving]
        await asyncio.gather(*(runner.close() for runner in runners))

    def saw(self, body: Object) -> None:
        """A job, as it is now."""
        key = job_of(body)
        if not self._is_ready:
            self._waiting[key] = body
            return
        uid, _ = identity(body)
        if uid in self._gone:
            return
        runner = self._runners.get(key)
        if runner is not None and runner.uid != uid:
            self._drop(key)
            runner = None
        if _is_going(body):
            if runner is not None:
                self._drop(key)
        elif runner is None:
            self._runners[key] = JobRunner(body, self._services)
        else:
            runner.saw(body)

    def lost(self, body: Object) -> None:
        """A job's object is deleted."""
        key, (uid, _) = job_of(body), identity(body)
        self._gone[uid] = time.monotonic()
        self._waiting.pop(key, None)
        runner = self._runners.get(key)
        if runner is not None and runner.uid == uid:
            self._drop(key)

    def wake(self, key: JobKey) -> None:
        """Its pods or their nodes have changed. From any thread."""
        runner = self._runners.get(key)
        if runner is not None:
            runner.wake()

    def facts(self) -> list[Callable[[], JobFacts | None]]:
        """What metrics tell of each job, when called. From any thread."""
        return [runner.facts for runner in list(self._runners.values())]

    def __len__(self) -> int:
        return len(self._runners)

    def _drop(self, key: JobKey) -> None:
        runner = self._runners.pop(key)
        runner.deleted()
        self._gone[runner.uid] = time.monotonic()
        self._leaving = {r for r in self._leaving if not r.is_over} | {runner}

    async def _resync(self) -> None:
        pace = Pace()
        while True:
            self.looked_s = time.monotonic()
            try:
                await self._look()
                pace.succeeded()
                await self._rest()
            except ClusterError as error:
                _log.warning("the cluster cannot be looked at: %s", error)
                pace.failed(getattr(error, "retry_after_s", None))
                await asyncio.sleep(pace.left_s)
            except Exception:
                _log.exception("a complete look failed")
                pace.failed()
                await asyncio.sleep(pace.left_s)

    async def _rest(self) -> None:
        """Until the next look. A board that was away at it is protected soon after it answers."""
        until_s = time.monotonic() + self._services.settings.resync_seconds
        pace = Pace()
        while self._unprotected and (left_s := until_s - time.monotonic()) > 0:
            pace.failed()
            await asyncio.sleep(min(pace.left_s, _UNPROTECTED_S, left_s))
            await self._protect_board({r.key: r.uid for r in self._runners.values()})
        await asyncio.sleep(max(0.0, until_s - time.monotonic()))

    async def _look(self) -> None:
        services, namespace = self._services, self._services.settings.namespace
        now_s = time.monotonic()
        if now_s - self._nodes_listed_s >= services.settings.node_resync_seconds:
            services.store.saw_all_nodes(await services.api.nodes(), now_s)
            self._nodes_listed_s = now_s
        asked_s = time.monotonic()
        services.store.saw_all_pods(await services.api.pods(JOB, namespace), asked_s)
        first = not self._is_ready
        boards, users = await self._left_on_board() if first else ({}, {})
        jobs_asked_s = time.monotonic()
        bodies = {job_of(body): body for body in await services.api.jobs(namespace)}
        # What a watch has said since is newer than the list; later ones go to the runners at once.
        bodies |= self._waiting
        uids = {key: identity(body)[0] for key, body in bodies.items() if not _is_going(body)}
        await self._protect_board(uids)
        self._is_ready = True
        bodies |= self._waiting
        self._waiting.clear()
        for body in bodies.values():
            self.saw(body)
        for runner in list(self._runners.values()):
            if runner.key not in bodies and runner.since_s < jobs_asked_s:
                _log.info("%s vanished while nobody looked", runner.key)
                self._drop(runner.key)
        self._gone = {u: s for u, s in self._gone.items() if s > jobs_asked_s - _REMEMBERED_S}
        for runner in self._runners.values():
            runner.listed(asked_s)
        if first:
            await self._clear_orphans(boards, users, uids)

    async def _protect_board(self, uids: dict[JobKey, str]) -> None:
        users = self._services.users
        try:
            if users is not None:
                await asyncio.to_thread(users.protect, uids)
            self._unprotected = ""
        except BoardError as error:
            reason = str(error) or type(error).__name__
            if reason != self._unprotected:  # once, however often it is tried again
                _log.warning("the board is not protected yet: %s", reason)
            self._unprotected = reason

    async def _left_on_board(self) -> tuple[Boards, Users]:
        """What is there before the jobs are listed: a younger job may add its own at any time."""
        services, namespace = self._services, self._services.settings.namespace
        try:
            boards = await asyncio.to_thread(find_boards, services.board, namespace)
            if services.users is None:
                return boards, {}
            return boards, await asyncio.to_thread(services.users.found, namespace)
        except BoardError as error:
            _log.info("boards without a job are not looked for: %s", error)
            return {}, {}

    async def _clear_orphans(self, boards: Boards, users: Users, uids: dict[JobKey, str]) -> None:
        """Boards of jobs whose deletion was asked for while no operator was there."""
        try:
            await asyncio.to_thread(clear_orphans, self._services.board, boards, uids)
            if self._services.users is not None:
                await asyncio.to_thread(self._services.users.dismiss_orphans, users, uids)
        except BoardError as error:
            _log.info("boards without a job are not cleared: %s", error)


def _is_going(body: Object) -> bool:
    """Whether its deletion was asked for."""
    return bool((body.get("metadata") or {}).get("deletionTimestamp"))
