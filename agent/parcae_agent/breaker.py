"""Breaking an epoch: getting a worker out of a collective whose peer will never answer.

gloo's ``abort()`` does not wake a blocked operation, shutting down the group's connected sockets
does, within milliseconds (measured on torch 2.13 and 2.15). NCCL has an abort that works. Both
happen on a thread of their own, since the worker's main thread is the one that hangs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
from typing import Protocol

import torch.distributed as dist

from parcae_agent.wire import Wire

_log = logging.getLogger(__name__)
_AGAIN_SECONDS = 0.005
_ROUNDS_BEFORE_CUT = 10


class Breaker(Protocol):
    """Wakes whatever is blocked in the current epoch's collectives."""

    def mark(self) -> None:
        """Remember what exists before the epoch: what is opened until ``seal`` belongs to it."""
        ...

    def seal(self) -> None:
        """The epoch has formed: what is opened from now on is somebody else's."""
        ...

    def shut(self) -> None:
        """Make every blocked and every later operation of the epoch raise. May be repeated."""
        ...


def make_breaker(backend: str) -> Breaker:
    """The breaker for a ``torch.distributed`` backend."""
    return NcclBreaker() if backend == "nccl" else SocketBreaker()


class SocketBreaker:
    """For gloo: shuts down every connected socket that was opened between mark and seal.

    A formed gloo group opens no more. What the user's data set connects to while training must
    outlive the epoch.
    """

    def __init__(self) -> None:
        self._before: dict[int, str] = {}
        self._sealed: dict[int, str] | None = None

    def mark(self) -> None:
        """See ``Breaker``."""
        self._before = _sockets()
        self._sealed = None

    def seal(self) -> None:
        """See ``Breaker``."""
        self._sealed = self._opened()

    def shut(self) -> None:
        """See ``Breaker``. Skips listening sockets: shutting gloo's ends the process."""
        for fd, inode in (self._opened() if self._sealed is None else self._sealed).items():
            _shut(fd, inode)

    def _opened(self) -> dict[int, str]:
        return {fd: inode for fd, inode in _sockets().items() if self._before.get(fd) != inode}


class NcclBreaker:
    """For NCCL: aborts all communicators (needs TORCH_NCCL_ASYNC_ERROR_HANDLING=0)."""

    def mark(self) -> None:
        """See ``Breaker``."""

    def seal(self) -> None:
        """See ``Breaker``."""

    def shut(self) -> None:
        """See ``Breaker``."""
        if dist.is_initialized():
            dist.distributed_c10d._abort_process_group()


class EpochGuard:
    """Breaks the epoch it guards, from any thread, and keeps at it until the epoch is left.

    A socket may be opened just after the first shutdown (the worker was about to connect), so
    a tripped guard shuts again until ``leave``. If the worker is still in the epoch after some
    rounds, it waits for what nothing will wake, and its wire is cut.
    """

    def __init__(self, breaker: Breaker, wire: Wire) -> None:
        self._breaker = breaker
        self._wire = wire
        self._condition = threading.Condition()
        self._revision = 0
        self._tripped = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="parcae-breaker", daemon=True)
        self._thread.start()

    @property
    def tripped(self) -> bool:
        """Whether the current epoch is broken."""
        return self._tripped

    def enter(self, revision: int) -> None:
        """An epoch begins: what is opened from now on belongs to it."""
        self._breaker.mark()
        self._wire.open()
        with self._condition:
            self._revision = revision
            self._tripped = False

    def trip(self, older_than: int) -> None:
        """Break the current epoch if its revision is older."""
        with self._condition:
            if 0 < self._revision < older_than:
                self._tripped = True
                self._condition.notify()

    def seal(self) -> None:
        """The epoch has formed: what is opened from now on does not belong to it."""
        self._breaker.seal()

    def shut_now(self) -> None:
        """Break it from its own thread: an error was seen, the peers must see one too."""
        self._breaker.shut()

    def leave(self) -> None:
        """The epoch is over; nothing of it is touched any more after this returns."""
        with self._condition:
            self._revision = 0
            self._tripped = False

    def _run(self) -> None:
        rounds = 0
        while True:
            with self._condition:
                if not self._tripped:
                    rounds = 0
                self._condition.wait_for(lambda: self._tripped or self._closed)
                if self._closed:
                    return
                # Under the lock: after leave() returns, a new epoch's sockets are safe.
                try:
                    self._breaker.shut()
                except Exception:
                    _log.exception("breaking the epoch failed; trying again")
                # Rounds, not seconds: a process that was stopped wakes with none of them done.
                rounds += 1
                if rounds >= _ROUNDS_BEFORE_CUT:
                    self._wire.cut()
                self._condition.wait(_AGAIN_SECONDS)

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()


def _sockets() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # closed since the folder was listed
        if target.startswith("socket:"):
            found[int(name)] = target
    return found


def _shut(fd: int, inode: str) -> None:
    try:
        copy = os.dup(fd)
    except OSError:
        return  # closed since
    if os.readlink(f"/proc/self/fd/{copy}") != inode:
        os.close(copy)  # the number was reused by another file since
        return
    with socket.socket(fileno=copy) as end, contextlib.suppress(OSError):
        # One that was never connected has nobody to wake: that is the error passed over.
        if not end.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            end.shutdown(socket.SHUT_RDWR)
