"""EtcdClient: etcd v3 for programs that must not care whether a server just died.

Reads, and writes that may be repeated, are repeated until they succeed or the caller's patience is
over; what must not be repeated says ``Indeterminate``; watches and leases go on by themselves.
Threads may share a client. Processes may not: make it after a fork, never before.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from parcae_api import etcd_calls
from parcae_api.errors import BoardUnavailable, InputError
from parcae_api.etcd_endpoint import Endpoint
from parcae_api.etcd_fault import Fault, FaultKind
from parcae_api.etcd_lease import Lease
from parcae_api.etcd_session import Session
from parcae_api.etcd_swap import Swap
from parcae_api.etcd_types import Change, Login, Reset, Snapshot, Tls, Versioned
from parcae_api.etcd_users import EtcdUsers
from parcae_api.etcd_watch import Watch
from parcae_api.etcd_wire import channel_credentials


class EtcdClient:
    """A client of one etcd cluster. Connects with the first call. A context manager.

    Every call raises ``BoardUnavailable`` when no server answered within ``patience_s``, and
    ``BoardRefused`` when one answered that it will not. A write that ended in ``BoardUnavailable``
    may still be carried out where it reached a server that only stood still.

    Args:
        endpoints: ``http://host:port``, ``https://host:port`` or ``host:port`` of each server.
        tls: Certificates, for all endpoints or none.
        login: A user, where the server knows users.
        timeout_s: The longest single try, in seconds. A watch notices a silent server within
            three times this.
        patience_s: The longest call, all tries and pauses together, in seconds.

    Raises:
        InputError: an endpoint has another form, or a certificate cannot be read.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        tls: Tls | None = None,
        login: Login | None = None,
        timeout_s: float = 2.0,
        patience_s: float = 10.0,
    ) -> None:
        if not endpoints:
            raise InputError("etcd: no endpoint given; give at least one, like http://host:2379")
        self._patience_s = patience_s
        self._session = Session(
            [_endpoint(text, tls, timeout_s) for text in endpoints], login, timeout_s
        )
        self._lock = threading.Lock()
        self._background: list[Watch | Lease] = []
        self._closed = False

    @property
    def users(self) -> EtcdUsers:
        """Who may do what; for a client that is root, or a server that asks nobody yet."""
        return EtcdUsers(self._session, self._patience_s)

    def get(self, key: str) -> Versioned | None:
        """The key's value, None when there is none."""
        return self._session.call(etcd_calls.get(key), self._patience_s)

    def list(self, prefix: str) -> Snapshot:
        """All keys that start with ``prefix``, as of one revision, sorted."""
        return self._session.call(etcd_calls.list_(prefix), self._patience_s)

    def put(self, key: str, value: bytes, lease: Lease | None = None) -> int:
        """Write a key and return the new revision. It lives as long as ``lease``, if given.

        Tried again when an answer is lost: meant for keys with one writer.
        """
        return self._session.call(etcd_calls.put(key, value, _id(lease)), self._patience_s)

    def delete(self, key: str) -> bool:
        """Delete a key. Whether there was one, as far as the answer that arrived tells."""
        return self._session.call(etcd_calls.delete(key, None), self._patience_s) > 0

    def delete_range(self, start: str, end: str) -> int:
        """Delete all keys from ``start`` up to, without, ``end``. Returns how many."""
        return self._session.call(etcd_calls.delete(start, end.encode()), self._patience_s)

    def delete_prefix(self, prefix: str) -> int:
        """Delete all keys that start with ``prefix``. Returns how many."""
        end = etcd_calls.prefix_end(prefix)
        return self._session.call(etcd_calls.delete(prefix, end), self._patience_s)

    def compare_and_swap(
        self, key: str, expected_mod_revision: int, value: bytes, lease: Lease | None = None
    ) -> int | None:
        """Write a key if its last write is the one that the caller saw.

        Written once at most. When an answer is lost, the key's history is read to find out whether
        the value was written, so competing writers must write different values.

        Args:
            key: The key.
            expected_mod_revision: The ``mod_revision`` seen; 0: the key must not exist.
            value: The new value.
            lease: What it shall live by.

        Returns:
            The new revision, or None when the key is not as expected.

        Raises:
            Indeterminate: an answer was lost, and whether the value was written cannot be told.
        """
        swap = Swap(self._session, key, expected_mod_revision, value, _id(lease))
        return swap.run(self._patience_s)

    def lease(self, ttl_s: float, on_lost: Callable[[], None] | None = None) -> Lease:
        """Take a lease and keep it alive in the background.

        Args:
            ttl_s: Seconds it lives without renewals, rounded up; the server may grant more.
            on_lost: Called once, in the lease's thread, when the server says that it is gone.
        """
        ttl_s = math.ceil(ttl_s)
        lease_id = secrets.randbits(62) + 1  # our own, so that a repeated request is the same one
        tries = self._session.tries(self._patience_s)
        while True:
            asked_s = time.monotonic()
            try:
                call = etcd_calls.grant(lease_id, int(ttl_s))
                granted_s = self._session.attempt(call, tries.time_for_one_s())
                break
            except Fault as fault:
                if fault.kind is FaultKind.EXISTS:  # the answer to an earlier try was lost
                    granted_s = ttl_s
                    break
                self._session.check_open()
                tries.failed(fault)
        lease = Lease(self._session, lease_id, granted_s, asked_s, on_lost)
        self._keep(lease)
        return lease

    def watch(
        self,
        prefix: str,
        on_change: Callable[[Change], None],
        *,
        on_error: Callable[[Exception], None],
        on_reset: Callable[[Reset], None] | None = None,
    ) -> Watch:
        """Follow all keys that start with ``prefix``, beginning with what is there.

        Returns at once; the watch waits for a server as long as it takes. The callbacks come from
        one thread, the watch's.

        Args:
            prefix: What the keys start with.
            on_change: Called for each change, in order, once.
            on_error: Called when the watch has ended by itself: the server refuses it, or a
                callback raised. The only such end.
            on_reset: Called at the start and whenever the server has dropped changes. Without it
                the changes of a reset come through ``on_change``.
        """
        watch = Watch(self._session, prefix, on_change, on_reset, on_error)
        self._keep(watch)
        return watch

    def compact(self, revision: int) -> None:
        """Drop the history before ``revision``. For tests and tools: servers do it themselves."""
        self._session.call(etcd_calls.compact(revision), self._patience_s)

    def close(self) -> None:
        """End watches, renewals, connections, and calls in other threads. Revokes no lease."""
        with self._lock:
            self._closed = True
            background, self._background = self._background, []
        for each in background:
            each.close()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _keep(self, each: Watch | Lease) -> None:
        with self._lock:
            if not self._closed:
                self._background = [*(b for b in self._background if b.is_running), each]
                return
        each.close()
        raise BoardUnavailable("the etcd client was closed")


def _id(lease: Lease | None) -> int:
    return 0 if lease is None else lease.id


def _endpoint(text: str, tls: Tls | None, timeout_s: float) -> Endpoint:
    scheme, separator, target = text.rpartition("://")
    target = target.rstrip("/")
    host, colon, port = target.rpartition(":")
    known = scheme in ("http", "https") if separator else True
    if not (known and host and colon and port.isdigit()):
        raise InputError(f"etcd: endpoint {text!r} must have the form http://host:port")
    if scheme == "http" and tls is not None:
        raise InputError(f"etcd: endpoint {text!r} has certificates; write it with https://")
    secure = scheme == "https" or tls is not None
    return Endpoint(target, _credentials(tls or Tls()) if secure else None, timeout_s)


def _credentials(tls: Tls) -> Any:
    if (tls.cert is None) != (tls.key is None):
        raise InputError("etcd: a client certificate needs both cert and key; give the other too")
    return channel_credentials(_read(tls.ca), _read(tls.cert), _read(tls.key))


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"etcd: {path} cannot be read: {error.strerror}") from error
