"""Endpoint: one etcd server, and the connection to it, replaced when it has gone deaf."""

from __future__ import annotations

import threading
import time
from typing import Any

from parcae_api.etcd_fault import Fault, FaultKind
from parcae_api.etcd_wire import Wire


class Endpoint:
    """One server. Threads share it.

    Args:
        target: ``host:port``.
        credentials: Of ``etcd_wire.channel_credentials``; None without TLS.
        timeout_s: The longest call, and the longest try to connect.
    """

    def __init__(self, target: str, credentials: Any | None, timeout_s: float) -> None:
        self.target = target
        self._credentials = credentials
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._wire: Wire | None = None
        self._retired: list[tuple[float, Wire]] = []
        self._closed = False

    def wire(self) -> Wire:
        """The connection, opened when this is first asked for.

        Raises:
            Fault: the endpoint was closed.
        """
        with self._lock:
            if self._closed:
                raise Fault(FaultKind.UNSENT, "the client was closed")
            if self._wire is None:
                self._wire = Wire(self.target, self._credentials, self._timeout_s)
            return self._wire

    def replace(self, deaf: Wire, since_monotonic_s: float) -> None:
        """Open another connection next time, unless ``deaf`` brought an answer since then.

        TCP itself needs many minutes to find out that the other side is gone. Calls of others
        still wait on the old connection; it is closed when their time limits are over.
        """
        now_s = time.monotonic()
        with self._lock:
            for retired_s, wire in list(self._retired):
                if retired_s + 2 * self._timeout_s < now_s:
                    self._retired.remove((retired_s, wire))
                    wire.close()
            if self._wire is deaf and deaf.heard_monotonic_s < since_monotonic_s:
                self._retired.append((now_s, deaf))
                self._wire = None

    def close(self) -> None:
        """Close all connections; calls on them end at once."""
        with self._lock:
            self._closed = True
            wires = [wire for _, wire in self._retired]
            if self._wire is not None:
                wires.append(self._wire)
        for wire in wires:
            wire.close()
