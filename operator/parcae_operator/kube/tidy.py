"""What is left to do for a job that is over, or deleted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

from parcae_api.board import JobBoard
from parcae_api.errors import BoardError
from parcae_api.job import ParcaeJob
from parcae_api.job_status import JobStatus
from parcae_operator.kube.errors import ClusterError
from parcae_operator.kube.labels import JobKey
from parcae_operator.kube.pace import Pace
from parcae_operator.kube.pod_cluster import PodCluster
from parcae_operator.kube.raw_objects import unix_s
from parcae_operator.kube.services import Services

_log = logging.getLogger(__name__)

_END_GRACE_S = 5
"""Seconds that agents have when the job is over: their state is saved."""
_DELETED_GRACE_S = 1


async def give_pods_back(job: ParcaeJob, cluster: PodCluster | None, services: Services) -> None:
    """Of a job that is over; those whose code crashed stay, for their logs.

    Args:
        job: Whose.
        cluster: Its pods as its thread saw them; None: this operator never drove the job.
        services: The operator's.
    """
    pods = cluster or PodCluster(
        job,
        services.api,
        services.store,
        services.settings,
        services.loop,
        agents=dict,
        report=lambda event: None,
    )
    await asyncio.to_thread(pods.delete_all, keep_crashed=True, grace_s=_END_GRACE_S)


def has_outlived(job: ParcaeJob, status: JobStatus) -> bool:
    """Whether a finished job's time has come."""
    ttl_s, over_s = job.spec.ttl_seconds_after_finished, unix_s(status.completion_time)
    return ttl_s is not None and over_s > 0 and time.time() >= over_s + ttl_s


async def forget_job(key: JobKey, uid: str, cluster: PodCluster | None, services: Services) -> None:
    """Of a deleted job: its pods go quickly, its board is cleared, as soon as they answer.

    Args:
        key: The job.
        uid: Its: another one of that name is left alone.
        cluster: Its pods; None: the API server alone collects them.
        services: The operator's.
    """
    if cluster is not None:
        with contextlib.suppress(ClusterError):
            await asyncio.to_thread(
                cluster.delete_all, keep_crashed=False, grace_s=_DELETED_GRACE_S
            )
    board = JobBoard(services.board, key.namespace, key.name)
    pace = Pace()
    while True:
        try:
            await asyncio.to_thread(_clear, board, uid)
            if services.users is not None:
                await asyncio.to_thread(services.users.dismiss, key, uid)
            return
        except BoardError as error:
            _log.info("%s: its board is not cleared yet: %s", key, error)
            pace.failed()
            await asyncio.sleep(pace.left_s)


def _clear(board: JobBoard, uid: str) -> None:
    """Unless another job of that name has taken it over."""
    job = board.job()
    if job is None or job.metadata.uid == uid:
        board.clear()
