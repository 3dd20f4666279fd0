"""Lease: keys that vanish with the process that wrote them.

A thread renews it at a third of its time to live. When the server is away it goes on asking: a
server that was down gives all leases their full time anew when it is back. Only the server's word
that the lease is gone ends it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from parcae_api import etcd_calls
from parcae_api.errors import BoardError
from parcae_api.etcd_fault import Fault, FaultKind, Stopped
from parcae_api.etcd_retry import Tries
from parcae_api.etcd_session import Session
from parcae_api.etcd_stop import Stop

_log = logging.getLogger(__name__)

_JOIN_S = 5.0


class Lease:
    """A granted lease, kept alive until it is closed, revoked or lost.

    Made by ``EtcdClient.lease``.

    Args:
        session: Where it was granted.
        lease_id: Its number there.
        ttl_s: Seconds it lives without a renewal, as granted.
        granted_monotonic_s: When it was asked for, by ``time.monotonic``.
        on_lost: Called once, in the lease's thread, when the server says that it is gone.
    """

    def __init__(
        self,
        session: Session,
        lease_id: int,
        ttl_s: float,
        granted_monotonic_s: float,
        on_lost: Callable[[], None] | None,
    ) -> None:
        self._session = session
        self.id = lease_id
        self.ttl_s = ttl_s
        self.lost = threading.Event()
        """Set when the server says that the lease is gone: its keys are deleted."""
        self._on_lost = on_lost
        self._renewed_monotonic_s = granted_monotonic_s
        self._stop = Stop()
        self._thread = threading.Thread(
            target=self._run, name=f"board-lease-{lease_id:x}", daemon=True
        )
        self._thread.start()

    @property
    def remaining_s(self) -> float:
        """Seconds for which the server surely keeps it; may be negative.

        Counted from before the last renewal that was answered, on a clock that runs on while this
        process is stopped: a process that wakes up sees here that it may have been given up.
        """
        return self._renewed_monotonic_s + self.ttl_s - time.monotonic()

    @property
    def is_running(self) -> bool:
        """Whether it is being kept alive."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the renewals. The server forgets the lease in ``ttl_s`` seconds."""
        self._stop.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def revoke(self, patience_s: float = 2.0) -> None:
        """End it now, and with it its keys. Does nothing when it is gone.

        Args:
            patience_s: The longest this may take.

        Raises:
            BoardUnavailable: no answer in time; the lease ends by itself in ``ttl_s`` seconds.
            BoardRefused: the server refused.
        """
        self.close()
        tries = self._session.tries(patience_s)
        while True:
            try:
                return self._session.attempt(etcd_calls.revoke(self.id), tries.time_for_one_s())
            except Fault as fault:
                if fault.kind is FaultKind.NOT_FOUND:
                    return None
                self._session.check_open()
                tries.failed(fault)

    def _run(self) -> None:
        try:
            while True:
                self._stop.pause(self.ttl_s / 3)
                if not self._renew():
                    break
        except Stopped:
            return
        _log.warning("the lease %x is gone", self.id)
        self.lost.set()
        if self._on_lost is not None:
            try:
                self._on_lost()
            except Exception:
                _log.exception("the callback for the lost lease %x failed", self.id)

    def _renew(self) -> bool:
        """Ask until there is an answer: whether the lease still is there."""
        tries = self._session.tries(float("inf"), self._stop)
        while True:
            asked_s = time.monotonic()
            try:
                timeout_s = min(tries.time_for_one_s(), self.ttl_s / 3)
                ttl_s = self._session.attempt(etcd_calls.keep_alive(self.id), timeout_s, self._stop)
            except Fault as fault:
                if fault.kind is FaultKind.NOT_FOUND:
                    return False
                self._wait_after(fault, tries)
            else:
                if ttl_s > 0:
                    self._renewed_monotonic_s = asked_s
                return ttl_s > 0

    def _wait_after(self, fault: Fault, tries: Tries) -> None:
        _log.debug("the lease %x was not renewed: %s", self.id, fault)
        try:
            tries.failed(fault)
        except BoardError as error:  # only the server's word that it is gone ends a lease
            _log.warning("the lease %x was not renewed: %s", self.id, error)
            self._stop.pause(self.ttl_s / 3)
