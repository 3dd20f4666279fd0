"""The outbox: writes go out in order, again and again, and never hold anybody up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from supervisor_desk import wait_until

from parcae_agent import outbox as outbox_module
from parcae_agent.outbox import Outbox
from parcae_api.errors import BoardRefused, BoardUnavailable


class Board:
    """Takes writes, or is away, or holds one up."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.tries = 0
        self.is_away = False
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()

    def write(self, what: str) -> Callable[[], None]:
        def write() -> None:
            self.tries += 1
            self.entered.set()
            assert self.open.wait(20)
            if self.is_away:
                raise BoardUnavailable("away")
            self.written.append(what)

        return write

    def hold(self, outbox: Outbox) -> None:
        """Have the outbox stuck in a write, so that all others wait."""
        self.open.clear()
        self.entered.clear()
        outbox.append(self.write("first"))
        assert self.entered.wait(20)


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def outbox(monkeypatch: pytest.MonkeyPatch, board: Board) -> Iterator[Outbox]:
    monkeypatch.setattr(outbox_module, "_RETRY_SECONDS", 0.01)
    outbox = Outbox()
    yield outbox
    board.open.set()
    outbox.close()
    outbox._thread.join(20)
    assert not outbox._thread.is_alive()


def test_what_is_appended_is_written_in_order(board: Board, outbox: Outbox) -> None:
    for name in "abcdef":
        outbox.append(board.write(name))
    assert outbox.flush(20)
    assert board.written == list("abcdef")


def test_only_the_newest_of_a_name_is_written(board: Board, outbox: Outbox) -> None:
    board.hold(outbox)
    for step in range(5):
        outbox.replace("progress", board.write(f"progress{step}"))
        outbox.append(board.write(f"event{step}"))
    board.open.set()
    assert outbox.flush(20)
    assert board.written == ["first", *(f"event{k}" for k in range(4)), "progress4", "event4"]


def test_writes_do_not_hold_the_caller_up(board: Board, outbox: Outbox) -> None:
    board.hold(outbox)
    outbox.append(board.write("second"))  # returns though the first write hangs
    assert board.written == []


def test_a_write_that_fails_is_tried_again_before_the_next(board: Board, outbox: Outbox) -> None:
    board.is_away = True
    outbox.append(board.write("a"))
    outbox.append(board.write("b"))
    wait_until(lambda: board.tries >= 3, "it was tried again")
    assert board.written == []
    board.is_away = False
    assert outbox.flush(20)
    assert board.written == ["a", "b"]


def test_a_write_that_failed_yields_to_a_newer_one_of_its_name(
    board: Board, outbox: Outbox
) -> None:
    board.is_away = True
    outbox.replace("membership", board.write("old"))
    wait_until(lambda: board.tries >= 1, "it was tried")
    outbox.replace("membership", board.write("new"))
    board.is_away = False
    assert outbox.flush(20)
    assert board.written[-1] == "new"


def test_flush_waits_for_the_write_under_way_too(board: Board, outbox: Outbox) -> None:
    board.hold(outbox)
    assert not outbox.flush(0.01)
    board.open.set()
    assert outbox.flush(20)


@pytest.mark.parametrize("error", [BoardRefused("no"), ValueError("a mistake of ours")])
def test_what_can_never_be_written_does_not_stop_the_rest(
    board: Board, outbox: Outbox, error: Exception
) -> None:
    def fail() -> None:
        raise error

    outbox.append(fail)
    outbox.append(board.write("next"))
    assert outbox.flush(20)
    assert board.written == ["next"]


def test_it_is_bounded_and_gives_up_the_oldest_events_first(board: Board, outbox: Outbox) -> None:
    board.hold(outbox)
    outbox.replace("failure", board.write("failure"))
    for number in range(1_100):
        outbox.append(board.write(str(number)))
    board.open.set()
    assert outbox.flush(20)
    assert board.written == ["first", "failure", *(str(n) for n in range(100, 1_100))]


def test_closing_drops_what_waits(board: Board, outbox: Outbox) -> None:
    board.hold(outbox)
    outbox.append(board.write("second"))
    outbox.close()
    board.open.set()
    wait_until(lambda: not outbox._thread.is_alive(), "it has ended")
    assert board.written == ["first"]
