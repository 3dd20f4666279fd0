"""Wire: one gRPC connection to one etcd server. The only module that imports ``grpc``.

Every call has a time limit, and whatever goes wrong comes out as a ``Fault``. A watch, which has
no time limit, asks the server for a sign of life when it is quiet: a stopped server, or a
connection that a middle box forgot, is otherwise not noticed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc

from parcae_api import etcd_calls
from parcae_api.etcd_calls import Call, WatchReply
from parcae_api.etcd_fault import Fault, FaultKind, Stopped
from parcae_api.etcd_stop import Stop

R = TypeVar("R")

_NEVER_SENT = "failed to connect to all addresses"
"""gRPC's words for a call that had no connection. Should they change, we only get more careful."""

_KINDS_BY_DETAIL = {
    "etcdserver: too many requests": FaultKind.UNSENT,
    "etcdserver: revision of auth store is old": FaultKind.UNAUTHENTICATED,
    "etcdserver: user name is empty": FaultKind.UNAUTHENTICATED,
    "etcdserver: authentication is not enabled": FaultKind.AUTH_IS_OFF,
    "etcdserver: lease already exists": FaultKind.EXISTS,
    "etcdserver: user name already exists": FaultKind.EXISTS,
    "etcdserver: role name already exists": FaultKind.EXISTS,
    "etcdserver: user name not found": FaultKind.NO_USER,
    "etcdserver: role name not found": FaultKind.NO_USER,
    "etcdserver: authentication failed, invalid user ID or password": FaultKind.WRONG_PASSWORD,
}
_KINDS_BY_CODE = {
    grpc.StatusCode.UNAVAILABLE: FaultKind.LOST,
    grpc.StatusCode.CANCELLED: FaultKind.LOST,
    grpc.StatusCode.UNKNOWN: FaultKind.LOST,
    grpc.StatusCode.INTERNAL: FaultKind.LOST,
    grpc.StatusCode.ABORTED: FaultKind.LOST,
    grpc.StatusCode.DEADLINE_EXCEEDED: FaultKind.SILENT,
    grpc.StatusCode.UNAUTHENTICATED: FaultKind.UNAUTHENTICATED,
    grpc.StatusCode.NOT_FOUND: FaultKind.NOT_FOUND,
    grpc.StatusCode.OUT_OF_RANGE: FaultKind.COMPACTED,
}


def channel_credentials(ca: bytes | None, cert: bytes | None, key: bytes | None) -> Any:
    """What a TLS connection is made with, from PEM texts."""
    return grpc.ssl_channel_credentials(ca, key, cert)


class Wire:
    """One connection. Made when the first call is; thread-safe.

    Args:
        target: ``host:port``.
        credentials: Of ``channel_credentials``; None without TLS.
        connect_timeout_s: The longest try to connect.
    """

    def __init__(self, target: str, credentials: Any | None, connect_timeout_s: float) -> None:
        options = _options(connect_timeout_s)
        self._channel: Any = (
            grpc.insecure_channel(target, options)
            if credentials is None
            else grpc.secure_channel(target, credentials, options)
        )
        self._stubs: dict[Any, Any] = {}
        self.heard_monotonic_s = 0.0
        """When the server last said anything."""

    def close(self) -> None:
        """End the connection, and every call on it."""
        self._channel.close()

    def send(
        self, call: Call[R], *, timeout_s: float, token: str | None, stop: Stop | None = None
    ) -> R:
        """Make a call and wait for its answer.

        Raises:
            Fault: no answer in ``timeout_s`` seconds, or one that is an error.
            Stopped: ``stop`` was set meanwhile.
        """
        with self._faults(stop):
            method = getattr(self._stub(call.stub), call.method)
            metadata = _metadata(token)
            if call.streams:
                reply = self._first(method, call, timeout_s, metadata, stop)
            elif stop is None:
                reply = method(call.request, timeout=timeout_s, metadata=metadata)
            else:
                future = method.future(call.request, timeout=timeout_s, metadata=metadata)
                with stop.cancelling(future.cancel):
                    reply = future.result()
        self.heard_monotonic_s = time.monotonic()
        return call.read(reply)

    def stream(
        self, call: Call[WatchReply], *, quiet_s: float, token: str | None, stop: Stop
    ) -> Generator[WatchReply, None, None]:
        """Follow a watch. Ends only by raising.

        Args:
            call: From ``etcd_calls.watch``.
            quiet_s: After so many seconds of silence a sign of life is asked for, and after as
                many again without one, the server is given up.
            token: As for ``send``.
            stop: Ends it.

        Raises:
            Fault: the connection or the server ended it, or the server is silent.
            Stopped: ``stop`` was set.
        """
        pulse = _Pulse(call.request, quiet_s)
        with self._faults(stop, pulse):
            method = getattr(self._stub(call.stub), call.method)
            stream = method(pulse.requests(), metadata=_metadata(token, needs_leader=True))
            pulse.give_up = stream.cancel
            try:
                with stop.cancelling(stream.cancel):
                    for reply in stream:
                        self.heard_monotonic_s = time.monotonic()
                        with pulse.beating():
                            yield call.read(reply)
            finally:
                pulse.over.set()
                stream.cancel()
        raise Fault(FaultKind.LOST, "the server ended the watch")

    def _first(
        self, method: Any, call: Call[R], timeout_s: float, metadata: Any, stop: Stop | None
    ) -> Any:
        stream = method(iter((call.request,)), timeout=timeout_s, metadata=metadata)
        try:
            with (stop or Stop()).cancelling(stream.cancel):
                for reply in stream:
                    return reply
        finally:
            stream.cancel()
        raise Fault(FaultKind.LOST, "the server ended the stream without an answer")

    def _stub(self, stub: Any) -> Any:
        if stub not in self._stubs:  # two threads may both make one: no harm
            self._stubs[stub] = stub(self._channel)
        return self._stubs[stub]

    @contextmanager
    def _faults(self, stop: Stop | None, pulse: _Pulse | None = None) -> Iterator[None]:
        try:
            yield
        except grpc.FutureCancelledError as error:
            raise Stopped from error
        except grpc.RpcError as error:
            if stop is not None and stop.is_set:
                raise Stopped from error
            if pulse is not None and pulse.gave_up:
                raise Fault(FaultKind.SILENT, "no sign of life on the watch") from error
            raise _fault(error) from error
        except ValueError as error:  # gRPC's word for a closed channel
            raise Fault(FaultKind.UNSENT, str(error)) from error


class _Pulse:
    """The requests of a watch's stream: its creation, then a question after each silence.

    A thread of gRPC's runs ``requests``; it ends with ``over``, within no time.
    """

    def __init__(self, creation: Any, quiet_s: float) -> None:
        self._creation = creation
        self._quiet_s = quiet_s
        self._beats = 0
        self._handing_out = False
        self.over = threading.Event()
        self.gave_up = False
        self.give_up: Any = None

    @contextmanager
    def beating(self) -> Iterator[None]:
        """The server spoke; as long as the listener is busy with it, silence means nothing."""
        self._beats += 1
        self._handing_out = True
        yield
        self._beats += 1
        self._handing_out = False

    def requests(self) -> Iterator[Any]:
        yield self._creation
        while not self.over.is_set():
            if self._is_heard(since=self._beats):
                continue
            asked = self._beats  # noted before: the answer may overtake the end of the yield
            yield etcd_calls.sign_of_life()
            if not self._is_heard(since=asked):
                self.gave_up = True
                self.give_up()
                return

    def _is_heard(self, since: int) -> bool:
        """Wait for ``quiet_s``; whether the server spoke since then, or need not have spoken."""
        return self.over.wait(self._quiet_s) or self._handing_out or self._beats != since


def _options(connect_timeout_s: float) -> list[tuple[str, int]]:
    return [
        # Quick to return to a server that is back.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 500),
        ("grpc.min_reconnect_backoff_ms", max(100, int(connect_timeout_s * 1000))),
        ("grpc.dns_min_time_between_resolutions_ms", 1000),
        # A dead connection is found while calls wait on it. Servers forbid more than one in 5 s.
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.max_pings_without_data", 0),
        # We retry ourselves, since only we know what may be repeated.
        ("grpc.enable_retries", 0),
        ("grpc.service_config_disable_resolution", 1),
        # Each client has its own connection, never one through an HTTP proxy.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
        ("grpc.max_receive_message_length", -1),
    ]


def _metadata(token: str | None, needs_leader: bool = False) -> tuple[tuple[str, str], ...]:
    # A server cut off from its cluster would otherwise keep a watch that never says anything.
    leader = (("hasleader", "true"),) if needs_leader else ()
    return leader if token is None else (("token", token), *leader)


def _fault(error: Any) -> Fault:
    code, detail = error.code(), str(error.details() or "")
    kind = _KINDS_BY_DETAIL.get(detail) or _KINDS_BY_CODE.get(code, FaultKind.REFUSED)
    if code is grpc.StatusCode.UNAVAILABLE and detail.startswith(_NEVER_SENT):
        kind = FaultKind.UNSENT
    return Fault(kind, detail or code.name)
