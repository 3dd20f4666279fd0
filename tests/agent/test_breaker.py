"""Breaking an epoch: its own connections end, nobody else's, and only while it is on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from crew import await_true

from parcae_agent.breaker import EpochGuard, SocketBreaker
from parcae_agent.wire import Wire


class Sockets:
    """Connected pairs; ``is_open`` says whether one can still send."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.listener = self.stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def connect(self) -> socket.socket:
        ours = self.stack.enter_context(socket.create_connection(self.listener.getsockname()))
        theirs, _ = self.listener.accept()
        self.stack.enter_context(theirs)
        self.last_accepted = theirs
        return ours


def is_open(end: socket.socket) -> bool:
    try:
        end.sendall(b"x")
    except OSError:
        return False
    return True


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    made = Sockets()
    with made.stack:
        yield made


def test_only_what_was_opened_in_the_epoch_is_shut(sockets: Sockets) -> None:
    breaker = SocketBreaker()
    before = sockets.connect()
    breaker.mark()
    within = sockets.connect()
    breaker.shut()
    assert is_open(before)
    assert not is_open(within)
    assert is_open(sockets.connect()), "the listening socket was shut"


def test_what_a_user_opens_while_training_is_not_the_epochs(sockets: Sockets) -> None:
    breaker = SocketBreaker()
    breaker.mark()
    epochs = sockets.connect()
    breaker.seal()
    users = sockets.connect()
    breaker.shut()
    assert not is_open(epochs)
    assert is_open(users)


def test_a_number_that_was_reused_is_left_alone(sockets: Sockets) -> None:
    breaker = SocketBreaker()
    breaker.mark()
    gone = sockets.connect()
    number = gone.fileno()
    breaker.seal()
    gone.close()
    other = sockets.connect()
    assert other.fileno() == number
    breaker.shut()
    assert is_open(other)


class Counting:
    """A breaker that counts, and can fail at first."""

    def __init__(self, failures: int = 0) -> None:
        self.shuts = 0
        self.failures = failures

    def mark(self) -> None: ...

    def seal(self) -> None: ...

    def shut(self) -> None:
        self.shuts += 1
        if self.shuts <= self.failures:
            raise OSError("not now")


@pytest.fixture
def guard() -> Iterator[tuple[EpochGuard, Counting, Wire]]:
    breaker, wire = Counting(), Wire(direct=False)
    made = EpochGuard(breaker, wire)
    yield made, breaker, wire
    made.close()


Guarded = tuple[EpochGuard, Counting, Wire]


def test_it_keeps_at_it_until_the_epoch_is_left(guard: Guarded) -> None:
    made, breaker, _ = guard
    made.enter(5)
    made.trip(older_than=6)
    await_true(lambda: breaker.shuts > 3, "shut again and again")
    assert made.tripped
    made.leave()
    shuts = breaker.shuts
    made.enter(6)
    assert breaker.shuts == shuts
    assert not made.tripped


@pytest.mark.parametrize("revision", [6, 7])
def test_an_epoch_that_is_not_older_is_not_broken(guard: Guarded, revision: int) -> None:
    made, _, _ = guard
    made.enter(revision)
    made.trip(older_than=6)
    assert not made.tripped


def test_between_epochs_there_is_nothing_to_break(guard: Guarded) -> None:
    made, breaker, _ = guard
    made.trip(older_than=6)
    made.enter(5)
    made.leave()
    made.trip(older_than=6)
    assert not made.tripped
    assert breaker.shuts == 0


def test_a_breaker_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    breaker = Counting(failures=2)
    made = EpochGuard(breaker, Wire(direct=False))
    made.enter(1)
    made.trip(older_than=2)
    await_true(lambda: breaker.shuts > 2, "shut a third time")
    made.leave()
    made.close()
    assert "breaking the epoch failed; trying again" in caplog.text


def test_an_operation_that_nothing_wakes_is_given_up(guard: Guarded) -> None:
    made, breaker, wire = guard
    made.enter(1)
    threading.Timer(0.05, lambda: made.trip(older_than=2)).start()
    never = threading.Event()
    with pytest.raises(ConnectionError, match="never ended"):
        wire.call(never.wait)
    assert breaker.shuts >= 10
    with pytest.raises(ConnectionError, match="was broken"):
        wire.call(lambda: None)
    made.leave()
    made.enter(2)
    wire.call(lambda: None)
    never.set()
