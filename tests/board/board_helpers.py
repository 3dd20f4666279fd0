"""What the tests of the board share: a recorder for watches, waiting, a TCP proxy that fails."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Change, Reset
from parcae_api.etcd_watch import Watch

WAIT_S = 15.0

MakeClient = Callable[..., EtcdClient]
"""Makes a client of the test's server: endpoints and options as ``EtcdClient`` takes them."""


def wait_until(condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.005)


class Recorder:
    """Takes all that a watch delivers, and keeps a mirror of the prefix from it alone."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.resets: list[Reset] = []
        self.errors: list[Exception] = []
        self.mirror: dict[str, bytes] = {}

    def watch(self, client: EtcdClient, prefix: str) -> Watch:
        """Start a watch and wait for its first reading."""
        watch = client.watch(
            prefix, self._take, on_reset=self._take_reset, on_error=self.errors.append
        )
        wait_until(lambda: bool(self.resets))
        return watch

    def _take(self, change: Change) -> None:
        self._apply(change)
        self.changes.append(change)

    def _take_reset(self, reset: Reset) -> None:
        for change in reset.changes:
            self._apply(change)
        self.resets.append(reset)

    def _apply(self, change: Change) -> None:
        if change.item is None:
            del self.mirror[change.key]
        else:
            self.mirror[change.key] = change.item.value

    @property
    def values(self) -> list[bytes | None]:
        return [None if c.item is None else c.item.value for c in self.changes]

    def wait_for(self, value: bytes | None, timeout_s: float = WAIT_S) -> None:
        wait_until(lambda: value in self.values, timeout_s)


class Proxy:
    """Forwards TCP connections to a server, and fails on demand."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._frozen: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lose: str | None = None
        self._cut = False
        self.num_lost = 0
        self.num_connections = 0
        self._spawn(self._accept)

    def lose_next_answer(self) -> None:
        """Pass the next request on; then drop the answer, and with it the connection."""
        self._lose = "answer"

    def lose_next_request(self) -> None:
        """Drop the next request, and with it the connection."""
        self._lose = "request"

    def freeze(self) -> None:
        """Pass nothing on through the connections that there are; new ones work."""
        with self._lock:
            self._frozen = {s for pair in self._pairs for s in pair}

    def cut(self) -> None:
        """End all connections and refuse new ones, until ``mend``."""
        self._cut = True
        self._end_all()

    def mend(self) -> None:
        self._cut = False

    def close(self) -> None:
        _shut(self._listener)
        self._end_all()
        for thread in self._threads:
            thread.join(5)
            assert not thread.is_alive()

    def _end_all(self) -> None:
        with self._lock:
            sockets = [s for pair in self._pairs for s in pair]
        for each in sockets:
            _shut(each)

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._cut:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:
                near.close()
                continue
            for each in (near, far):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.append((near, far))
                self.num_connections += 1
            self._spawn(self._forward, near, far, "request")
            self._spawn(self._forward, far, near, "answer")

    def _forward(self, source: socket.socket, sink: socket.socket, what: str) -> None:
        try:
            while data := source.recv(1 << 16):
                if source in self._frozen:
                    continue
                if self._lose == what and _holds_message(data):
                    self._lose = None
                    self.num_lost += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        finally:
            _shut(source)
            _shut(sink)


def _shut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


def _holds_message(data: bytes) -> bool:
    """Whether HTTP/2 frames hold DATA with content: a request or an answer, not housekeeping."""
    if data.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
        data = data[24:]
    while len(data) >= 9:
        length = int.from_bytes(data[:3], "big")
        if data[3] == 0 and length > 0:
            return True
        data = data[9 + length :]
    return False
