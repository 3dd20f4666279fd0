"""EtcdUsers: who may do what on an etcd cluster.

Everything here may be repeated, by one program or by several at once, and ends the same.
"""

from __future__ import annotations

import logging
from typing import TypeVar

from parcae_api import etcd_auth_calls, etcd_calls
from parcae_api.etcd_calls import Call
from parcae_api.etcd_fault import Fault, FaultKind
from parcae_api.etcd_session import Session
from parcae_api.etcd_types import Login

_log = logging.getLogger(__name__)

R = TypeVar("R")


class EtcdUsers:
    """Users, each with one role of its own name. See ``EtcdClient.users``.

    All calls raise ``BoardUnavailable`` and ``BoardRefused`` as those of ``EtcdClient`` do.
    """

    def __init__(self, session: Session, patience_s: float) -> None:
        self._session = session
        self._patience_s = patience_s

    def protect(self, root: Login) -> None:
        """See that the cluster asks everybody who they are, and that ``root`` may do everything.

        Args:
            root: The user ``root``; this client's own login, from now on.
        """
        self._do(etcd_auth_calls.add_user(root.user, root.password), FaultKind.EXISTS)
        self._do(etcd_auth_calls.give_role(root.user, "root"))
        self._do(etcd_auth_calls.enable())

    def are_asked(self, known: Login) -> bool:
        """Whether the cluster asks everybody who they are.

        Args:
            known: A user that it knows if it asks.
        """
        call = etcd_calls.authenticate(known.user, known.password)
        return self._do(call, FaultKind.AUTH_IS_OFF) is None

    def admit(self, user: Login, prefix: str) -> None:
        """See that a user exists, with that password, who may read and write that prefix only."""
        self._do(etcd_auth_calls.add_role(user.user), FaultKind.EXISTS)
        self._do(etcd_auth_calls.allow_prefix(user.user, prefix))
        added = etcd_auth_calls.add_user(user.user, user.password)
        if self._do(added, FaultKind.EXISTS) is FaultKind.EXISTS and not self._knows(user):
            _log.info("etcd: the user %s gets another password", user.user)
            self._do(etcd_auth_calls.change_password(user.user, user.password))
        self._do(etcd_auth_calls.give_role(user.user, user.user))

    def dismiss(self, name: str) -> None:
        """See that there is no such user; who still uses its password is refused at once."""
        self._do(etcd_auth_calls.delete_user(name), FaultKind.NO_USER)
        self._do(etcd_auth_calls.delete_role(name), FaultKind.NO_USER)

    def names(self) -> tuple[str, ...]:
        """All users."""
        return self._session.call(etcd_auth_calls.list_users(), self._patience_s)

    def _knows(self, user: Login) -> bool:
        # A change of password would end all tokens of the user: not for nothing.
        call = etcd_calls.authenticate(user.user, user.password)
        return self._do(call, FaultKind.WRONG_PASSWORD, FaultKind.AUTH_IS_OFF) is None

    def _do(self, call: Call[R], *tolerated: FaultKind) -> FaultKind | None:
        """Make a call until it is answered; which of the tolerated answers came, if one did."""
        tries = self._session.tries(self._patience_s)
        while True:
            try:
                self._session.attempt(call, tries.time_for_one_s())
            except Fault as fault:
                if fault.kind in tolerated:
                    return fault.kind
                self._session.check_open()
                tries.failed(fault)
            else:
                return None
