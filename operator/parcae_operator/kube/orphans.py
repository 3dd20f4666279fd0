"""Boards whose job was deleted while no operator was there to clear them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pydantic import ValidationError

from parcae_api.board import JobBoard
from parcae_api.board_keys import ROOT, KeyKind
from parcae_api.etcd import EtcdClient
from parcae_api.job import ParcaeJob
from parcae_operator.kube.labels import JobKey

_log = logging.getLogger(__name__)


def clear_orphans(client: EtcdClient, prefix: str, uids: Mapping[JobKey, str]) -> int:
    """Clear boards that an operator wrote for jobs that are no more. Returns how many.

    Boards of local runs are left alone: their jobs have no uid.

    Args:
        client: Of the board.
        prefix: Of all boards that this operator may clear.
        uids: The jobs that are there.

    Raises:
        BoardError: the board did not answer.
    """
    cleared = 0
    for key, item in client.list(prefix).items.items():
        parts = key.removeprefix(ROOT).split("/")
        if len(parts) != 3 or parts[2] != KeyKind.JOB:
            continue
        try:
            uid = ParcaeJob.from_json(item.value).metadata.uid
        except ValidationError:
            continue
        job = JobKey(parts[0], parts[1])
        if uid and uids.get(job) != uid:
            _log.info("clearing the board of %s, which is deleted", job)
            JobBoard(client, job.namespace, job.name).clear()
            cleared += 1
    return cleared
