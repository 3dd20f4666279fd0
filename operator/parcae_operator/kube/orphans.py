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


def find_boards(client: EtcdClient, namespace: str) -> dict[JobKey, str]:
    """Whose boards an operator has written: uids by job. Boards of local runs have none.

    Args:
        client: Of the board.
        namespace: That this operator is for; empty: all.

    Raises:
        BoardError: the board did not answer.
    """
    found = {}
    prefix = f"{ROOT}{namespace}/" if namespace else ROOT
    for key, item in client.list(prefix).items.items():
        parts = key.removeprefix(ROOT).split("/")
        if len(parts) != 3 or parts[2] != KeyKind.JOB:
            continue
        try:
            uid = ParcaeJob.read(item.value).metadata.uid
        except ValidationError:
            continue
        if uid:
            found[JobKey(parts[0], parts[1])] = uid
    return found


def clear_orphans(
    client: EtcdClient, boards: Mapping[JobKey, str], uids: Mapping[JobKey, str]
) -> int:
    """Clear the boards of jobs that are no more. Returns how many.

    Args:
        client: Of the board.
        boards: As found before the jobs were listed: a younger job may have written its own since.
        uids: The jobs that are there.

    Raises:
        BoardError: the board did not answer.
    """
    orphans = [job for job, uid in boards.items() if uids.get(job) != uid]
    for job in orphans:
        _log.info("clearing the board of %s, which is deleted", job)
        JobBoard(client, job.namespace, job.name).clear()
    return len(orphans)
