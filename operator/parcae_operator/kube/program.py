"""The operator's parts, made at its start and closed at its end."""

from __future__ import annotations

import asyncio
import logging
import time

from parcae_api.board_access import read_access
from parcae_api.etcd import EtcdClient
from parcae_operator.claim import Claim
from parcae_operator.kube.api import ClusterApi
from parcae_operator.kube.board_users import BoardUsers
from parcae_operator.kube.errors import ClusterRefused, ClusterUnavailable
from parcae_operator.kube.jobs import Jobs
from parcae_operator.kube.labels import JobKey
from parcae_operator.kube.pace import Pace
from parcae_operator.kube.services import Services
from parcae_operator.kube.settings import OperatorSettings
from parcae_operator.kube.store import ClusterStore
from parcae_operator.kube.telling import Telling
from parcae_operator.metrics.meter import Meter
from parcae_optimizer.client import PlannerClient

_log = logging.getLogger(__name__)

_BOARD_PATIENCE_S = 5.0
_STALE_AFTER = 10
"""Complete looks that may be missed before this program counts as stuck."""


class Program:
    """One running operator. ``services`` and ``jobs`` are there once it has started."""

    services: Services
    jobs: Jobs
    telling: Telling

    def __init__(self, settings: OperatorSettings) -> None:
        self.settings = settings

    def __copy__(self) -> Program:
        """Kopf gives every object a copy of what it is given: here all share one."""
        return self

    async def start(self) -> None:
        """Connect, and begin to follow jobs.

        Raises:
            InputError: the board's credentials are not where they should be.
            ClusterRefused: the custom resource definition is not installed, or may not be read.
        """
        settings = self.settings
        access = read_access(settings.board_access)
        api = await ClusterApi.connect()
        await _await_kind(api)
        board = EtcdClient(
            settings.endpoints, tls=access.tls, login=access.login, patience_s=_BOARD_PATIENCE_S
        )
        meter = Meter()
        self.services = Services(
            settings=settings,
            api=api,
            store=ClusterStore(on_change=self._woken, on_worse=meter.worsened),
            board=board,
            users=BoardUsers(board, access) if settings.board_access is not None else None,
            claim=Claim(board, settings.identity),
            planner=PlannerClient(settings.planner) if settings.planner else None,
            loop=asyncio.get_running_loop(),
            meter=meter,
        )
        self.jobs = Jobs(self.services)
        self.telling = Telling.start(self.services, self.jobs)
        self.jobs.start()

    async def close(self) -> None:
        """Let go of all jobs, so that another operator can take them over at once."""
        await asyncio.to_thread(self.telling.close)
        await self.jobs.close()
        services = self.services
        await asyncio.to_thread(services.claim.give_up)
        if isinstance(services.planner, PlannerClient):
            services.planner.close()
        await asyncio.to_thread(services.board.close)
        await services.api.close()

    def is_stuck(self) -> bool:
        """Whether this program has stopped looking at the cluster, whatever that answers."""
        return time.monotonic() - self.jobs.looked_s > _STALE_AFTER * self.settings.resync_seconds

    def _woken(self, key: JobKey) -> None:
        self.jobs.wake(key)


async def _await_kind(api: ClusterApi) -> None:
    """Wait for an API server that answers, and see that it knows our kind."""
    pace = Pace()
    while True:
        try:
            if await api.has_jobs_kind():
                return
        except ClusterUnavailable as error:
            _log.warning("waiting for the API server: %s", error)
            pace.failed(error.retry_after_s)
            await asyncio.sleep(pace.left_s)
            continue
        raise ClusterRefused(
            "parcaejobs.parcae.dev: the custom resource definition is not installed; apply "
            "crds/parcae.dev_parcaejobs.yaml, or install the chart with crds.enabled=true"
        )
