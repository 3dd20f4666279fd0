"""One user of the board for each job, which may touch that job's board only.

Its password follows from the operator's own and from the job, so that nothing has to be remembered,
and no Secret to be read: another operator finds the same. It reaches the pods as a Secret that
belongs to the job and goes with it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parcae_api.board_access import CA, PASSWORD, USER, BoardAccess
from parcae_api.board_keys import ROOT
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Login
from parcae_api.job import ParcaeJob
from parcae_operator.kube.labels import JobKey, owned_metadata

_log = logging.getLogger(__name__)

Object = dict[str, Any]
_OURS = "job/"


def secret_name(job: ParcaeJob) -> str:
    """The Secret that a job's pods mount. Another job of that name has another one."""
    return f"{job.metadata.name}-board-{job.metadata.uid[:8]}"


class BoardUsers:
    """Makes and dismisses them.

    Args:
        client: Of the board, as root; or of one that asks nobody, for TLS alone.
        access: The operator's own.
    """

    def __init__(self, client: EtcdClient, access: BoardAccess) -> None:
        self._client = client
        self._root = access.login
        self._ca: Path | None = access.tls.ca if access.tls is not None else None

    def protect(self, uids: Mapping[JobKey, str]) -> None:
        """See that the board asks everybody who they are.

        One that has lost its data asks nobody: the agents that are at work must be known to it
        before it does.

        Args:
            uids: Of all jobs that there are.

        Raises:
            BoardError: it did not answer, or knows another root.
        """
        users = self._client.users
        if self._root is None or users.are_asked(self._root):
            return
        for key, uid in uids.items():
            users.admit(_login(self._root, key, uid), _prefix(key))
        users.protect(self._root)
        _log.info("the board is protected: one user for each job")

    def admit(self, job: ParcaeJob) -> Object:
        """See that the job's user exists; the Secret that its pods need.

        Raises:
            BoardError: the board did not answer.
        """
        key, uid = JobKey(job.metadata.namespace, job.metadata.name), job.metadata.uid
        data: dict[str, bytes] = {}
        if self._root is not None:
            login = _login(self._root, key, uid)
            self._client.users.admit(login, _prefix(key))
            data |= {USER: login.user.encode(), PASSWORD: login.password.encode()}
        if self._ca is not None:
            data[CA] = self._ca.read_bytes()
        return _secret(job, data)

    def dismiss(self, key: JobKey, uid: str) -> None:
        """Of a deleted job: whoever still knows its password is refused from now on.

        Raises:
            BoardError: the board did not answer.
        """
        if self._root is not None:
            self._client.users.dismiss(_user(key, uid))

    def found(self, namespace: str) -> dict[str, tuple[JobKey, str]]:
        """The jobs' users that there are: job and uid by name.

        Args:
            namespace: That this operator is for; empty: all.

        Raises:
            BoardError: the board did not answer.
        """
        if self._root is None:
            return {}
        users = {}
        for name in self._client.users.names():
            parts = name.removeprefix(_OURS).split("/")
            if name.startswith(_OURS) and len(parts) == 3 and namespace in ("", parts[0]):
                users[name] = (JobKey(parts[0], parts[1]), parts[2])
        return users

    def dismiss_orphans(
        self, users: Mapping[str, tuple[JobKey, str]], uids: Mapping[JobKey, str]
    ) -> None:
        """Dismiss users of jobs that are no more.

        Args:
            users: As found before the jobs were listed.
            uids: The jobs that are there.

        Raises:
            BoardError: the board did not answer.
        """
        for key, uid in users.values():
            if uids.get(key) != uid:
                _log.info("dismissing the board's user of %s, which is deleted", key)
                self.dismiss(key, uid)


def _prefix(key: JobKey) -> str:
    return f"{ROOT}{key}/"


def _user(key: JobKey, uid: str) -> str:
    return f"{_OURS}{key}/{uid}"


def _login(root: Login, key: JobKey, uid: str) -> Login:
    user = _user(key, uid)
    digest = hmac.new(root.password.encode(), user.encode(), hashlib.sha256).digest()
    return Login(user, base64.urlsafe_b64encode(digest).decode().rstrip("="))


def _secret(job: ParcaeJob, data: Mapping[str, bytes]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": owned_metadata(job, secret_name(job)),
        "type": "Opaque",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
