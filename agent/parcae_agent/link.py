"""Messages between a supervisor and its worker: JSON lines over a socket pair.

The worker never talks to the board itself: no etcd latency or client thread reaches the
training process. When either side dies the other reads an end of file, and ends too.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from parcae_api.events import Failed, Migration, RolledBack
from parcae_api.membership import Holding
from parcae_api.model import Contract
from parcae_api.plan import Plan, Rendezvous
from parcae_api.profile import Profile
from parcae_api.progress import Progress


class PlanNews(Contract):
    """To the worker: the newest plan."""

    type: Literal["plan"] = "plan"
    plan: Plan


class MeetingPlace(Contract):
    """Both ways: where the members of a revision meet."""

    type: Literal["rendezvous"] = "rendezvous"
    rendezvous: Rendezvous


class Ping(Contract):
    """To the worker: are you alive?"""

    type: Literal["ping"] = "ping"


class Quit(Contract):
    """To the worker: the job is over for you."""

    type: Literal["quit"] = "quit"


class Pong(Contract):
    """From the worker: its threads run."""

    type: Literal["pong"] = "pong"


class Ready(Contract):
    """From the worker: the user's code is loaded, this is the model."""

    type: Literal["ready"] = "ready"
    profile: Profile


class State(Contract):
    """From the worker: where it stands now."""

    type: Literal["state"] = "state"
    revision: int | None
    """The epoch it trains in, None outside the grid."""
    idle_revision: int = 0
    """The newest plan that it has nothing (more) to do for."""
    broken_revision: int = 0
    """The newest revision that could not form or broke under it."""
    holding: Holding | None = None
    saved: Holding | None = None
    """What it has written to the checkpoint folder for good, at a pause or the end."""


class Advanced(Contract):
    """From the grid's first worker: progress, at most a few times a second."""

    type: Literal["progress"] = "progress"
    progress: Progress


class Measured(Contract):
    """From the grid's first worker: measured layer times."""

    type: Literal["profile"] = "profile"
    profile: Profile


class Happened(Contract):
    """From the worker: an event for people and records."""

    type: Literal["event"] = "event"
    event: Annotated[Migration | RolledBack, Field(discriminator="type")]


class UserFailed(Contract):
    """From the worker: the user's code failed; the worker ends."""

    type: Literal["failed"] = "failed"
    failure: Failed


Message = Annotated[
    PlanNews
    | MeetingPlace
    | Ping
    | Quit
    | Pong
    | Ready
    | State
    | Advanced
    | Measured
    | Happened
    | UserFailed,
    Field(discriminator="type"),
]
_ADAPTER: TypeAdapter[Message] = TypeAdapter(Message)


class Link:
    """One end. ``send`` may be called from any thread; one thread reads."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._reader = end.makefile("rb")
        self._lock = threading.Lock()

    def send(self, message: Contract) -> bool:
        """Send one message; False when the other side is gone."""
        try:
            with self._lock:
                self._socket.sendall(message.to_json() + b"\n")
        except OSError:
            return False
        return True

    def messages(self) -> Iterator[Message]:
        """Messages until the other side is gone."""
        while line := self._line():
            yield _ADAPTER.validate_json(line)

    def _line(self) -> bytes:
        try:
            return self._reader.readline()
        except (OSError, ValueError):
            return b""  # the other side has gone, or this one has closed

    def close(self) -> None:
        """Close this end; the other side reads an end of file."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.close()  # its reader sees the end first: that was the shutdown
        self._socket.close()
