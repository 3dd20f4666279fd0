"""Session: the endpoints of one etcd cluster, which of them is used, and who we are there.

Owns the connections and the token, and tries again what may be tried again. Threads share it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import TypeVar

from parcae_api import etcd_calls
from parcae_api.errors import BoardUnavailable
from parcae_api.etcd_calls import Call, WatchReply
from parcae_api.etcd_endpoint import Endpoint
from parcae_api.etcd_fault import Fault, FaultKind
from parcae_api.etcd_retry import Tries
from parcae_api.etcd_stop import Stop
from parcae_api.etcd_types import Login
from parcae_api.etcd_wire import Wire

_log = logging.getLogger(__name__)

R = TypeVar("R")

_NO_TOKEN = ""
"""In place of a token: the server does not ask for one."""


class Session:
    """Calls on a cluster: to the endpoint that works, as the user that we are.

    Args:
        endpoints: At least one.
        login: None where the server knows no users.
        timeout_s: The longest single try, in seconds.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], login: Login | None, timeout_s: float
    ) -> None:
        self._endpoints = list(endpoints)
        self._login = login
        self.timeout_s = timeout_s
        self._lock = threading.Lock()
        self._current = 0
        self._closed = False
        self._pid = os.getpid()
        self._login_lock = threading.Lock()
        self._token: str | None = None

    def tries(self, patience_s: float, stop: Stop | None = None) -> Tries:
        """Tries for one call of at most ``patience_s`` seconds."""
        return Tries(patience_s, self.timeout_s, len(self._endpoints) - 1, stop)

    def call(self, call: Call[R], patience_s: float, stop: Stop | None = None) -> R:
        """Make a call that may be repeated, until it is answered.

        Raises:
            BoardUnavailable: no answer within ``patience_s`` seconds.
            BoardRefused: the server refused.
            Stopped: ``stop`` was set.
        """
        tries = self.tries(patience_s, stop)
        while True:
            try:
                return self.attempt(call, tries.time_for_one_s(), stop)
            except Fault as fault:
                self.check_open()
                tries.failed(fault)

    def attempt(self, call: Call[R], timeout_s: float, stop: Stop | None = None) -> R:
        """Make one try of at most ``timeout_s`` seconds.

        Raises:
            Fault: it failed; the next one may go to another endpoint or carry another token.
            Stopped: ``stop`` was set.
        """
        started_s = time.monotonic()
        endpoint = self._endpoint()
        wire = endpoint.wire()
        token = self._get_token(endpoint, wire, started_s + timeout_s, stop)
        try:
            left_s = started_s + timeout_s - time.monotonic()
            return wire.send(call, timeout_s=left_s, token=token, stop=stop)
        except Fault as fault:
            self._learn(fault, endpoint, wire, token, started_s)
            raise

    def follow(
        self, call: Call[WatchReply], quiet_s: float, stop: Stop
    ) -> Generator[WatchReply, None, None]:
        """Follow a watch on the current endpoint. Ends only by raising.

        Raises:
            Fault: the server or the connection ended it, or is silent.
            Stopped: ``stop`` was set.
        """
        endpoint = self._endpoint()
        wire = endpoint.wire()
        token = self._get_token(endpoint, wire, time.monotonic() + self.timeout_s, stop)
        try:
            with closing(wire.stream(call, quiet_s=quiet_s, token=token, stop=stop)) as replies:
                for reply in replies:
                    if reply.canceled:
                        raise self._why_ended(reply)
                    yield reply
        except Fault as fault:
            self._learn(fault, endpoint, wire, token, time.monotonic() - quiet_s)
            raise

    def check_open(self) -> None:
        """Raise when this cannot be used any more.

        Raises:
            BoardUnavailable: it was closed.
        """
        if self._closed:
            raise BoardUnavailable("the etcd client was closed")

    def close(self) -> None:
        """Close all connections; calls on them end at once."""
        self._closed = True
        for endpoint in self._endpoints:
            endpoint.close()

    def _endpoint(self) -> Endpoint:
        if os.getpid() != self._pid:  # its connections and threads stayed in the parent
            raise RuntimeError("an etcd client was made before a fork; make it afterwards")
        with self._lock:
            return self._endpoints[self._current]

    def _learn(
        self, fault: Fault, endpoint: Endpoint, wire: Wire, token: str | None, started_s: float
    ) -> None:
        if fault.kind is FaultKind.UNAUTHENTICATED:
            with self._lock:
                if (self._token or None) == token:
                    self._token = None
        if not fault.blames_endpoint:
            return
        if fault.kind is FaultKind.SILENT:
            endpoint.replace(wire, started_s)
        with self._lock:
            if self._endpoints[self._current] is endpoint and len(self._endpoints) > 1:
                self._current = (self._current + 1) % len(self._endpoints)
                _log.info(
                    "etcd %s failed (%s); trying %s",
                    endpoint.target,
                    fault,
                    self._endpoints[self._current].target,
                )

    def _get_token(
        self, endpoint: Endpoint, wire: Wire, deadline_s: float, stop: Stop | None
    ) -> str | None:
        """The token for a call that has to be answered by ``deadline_s``, by ``time.monotonic``.

        Raises:
            Fault: there is none; in no case was the call itself sent.
        """
        if self._login is None:
            return None
        if (token := self._token) is not None:
            return token or None
        started_s = time.monotonic()
        # One thread logs in, the others wait for it, no longer than for a call of their own.
        if not self._login_lock.acquire(timeout=max(0.0, deadline_s - started_s)):
            raise Fault(FaultKind.UNSENT, "another thread is still logging in")
        try:
            if self._token is None:
                self._token = self._log_in(self._login, wire, deadline_s, stop)
            return self._token or None
        except Fault as fault:
            self._learn(fault, endpoint, wire, None, started_s)
            if fault.may_have_happened:
                raise Fault(FaultKind.UNSENT, f"logging in: {fault.detail}") from fault
            raise
        finally:
            self._login_lock.release()

    def _log_in(self, login: Login, wire: Wire, deadline_s: float, stop: Stop | None) -> str:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise Fault(FaultKind.UNSENT, "another thread took long to log in")
        try:
            call = etcd_calls.authenticate(login.user, login.password)
            return wire.send(call, timeout_s=left_s, token=None, stop=stop)
        except Fault as fault:
            if fault.kind is not FaultKind.AUTH_IS_OFF:
                raise
            _log.info("etcd asks nobody who they are yet: %s goes on without a login", login.user)
            return _NO_TOKEN

    def _why_ended(self, reply: WatchReply) -> Fault:
        if reply.compact_revision > 0:
            return Fault(FaultKind.COMPACTED, f"before revision {reply.compact_revision}")
        if "permission denied" in reply.reason or "auth token" in reply.reason:
            # Servers say "permission denied" of an outdated token too: try once with a new one.
            kind = FaultKind.REFUSED if self._login is None else FaultKind.UNAUTHENTICATED
            return Fault(kind, reply.reason)
        return Fault(FaultKind.LOST, reply.reason or "the server ended the watch")
