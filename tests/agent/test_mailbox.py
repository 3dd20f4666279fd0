"""News from the supervisor: what breaks an epoch at once, what waits for a step's end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import cast

import pytest
from crew import await_true

from parcae_agent.breaker import EpochGuard
from parcae_agent.link import Link, MeetingPlace, Ping, PlanNews, Pong, Quit
from parcae_agent.mailbox import Mailbox
from parcae_api.plan import Plan, PlanReason, Rendezvous


class Guard:
    """Remembers what it was told to break."""

    def __init__(self) -> None:
        self.trips: list[int] = []

    def trip(self, older_than: int) -> None:
        self.trips.append(older_than)


class Desk:
    """A mailbox, the supervisor's end of its link, and what it did."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.guard = Guard()
        self.supervisor, self.raw = Link(ours), ours
        self.workers = Link(theirs)
        self.mailbox = Mailbox(self.workers, cast(EpochGuard, self.guard))
        self.answers = self.supervisor.messages()
        self.orphaned = threading.Event()
        self.mailbox._on_orphaned = self.orphaned.set

    def plan(self, revision: int, reason: PlanReason = PlanReason.NOTICE) -> None:
        plan = Plan(revision=revision, reason=reason, why="a test", created_unix_s=0.0)
        self.supervisor.send(PlanNews(plan=plan))

    def place(self, revision: int) -> None:
        place = Rendezvous(revision=revision, host="h", port=revision)
        self.supervisor.send(MeetingPlace(rendezvous=place))

    def read(self) -> None:
        """Until everything sent so far has been read."""
        self.supervisor.send(Ping())
        assert isinstance(next(self.answers), Pong)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.mailbox.close()
    made.supervisor.close()
    made.workers.close()


def test_the_newest_plan_is_taken_and_older_ones_are_passed_over(desk: Desk) -> None:
    desk.plan(3)
    desk.plan(5)
    desk.plan(4)
    desk.read()
    plan = desk.mailbox.wait_for_plan(newer_than=0)
    assert plan is not None
    assert plan.revision == desk.mailbox.newest_revision == 5


@pytest.mark.parametrize("reason", list(PlanReason))
def test_only_sudden_news_breaks_an_epoch_that_trains(desk: Desk, reason: PlanReason) -> None:
    desk.plan(4)
    desk.read()
    desk.mailbox.forming(4)
    desk.mailbox.formed()
    desk.plan(5, reason)
    desk.read()
    sudden = reason in (PlanReason.LOSS, PlanReason.ROLLBACK)
    assert desk.guard.trips == ([5] if sudden else [])


def test_any_newer_plan_breaks_a_revision_that_forms(desk: Desk) -> None:
    desk.plan(4)
    desk.read()
    desk.mailbox.forming(4)
    desk.plan(5, PlanReason.JOIN)
    desk.read()
    assert desk.guard.trips == [5]


@pytest.mark.parametrize("news", ["plan", "quit"])
def test_what_came_just_before_forming_breaks_it_too(desk: Desk, news: str) -> None:
    desk.plan(4)
    if news == "plan":
        desk.plan(5, PlanReason.JOIN)
    else:
        desk.supervisor.send(Quit())
    desk.read()
    desk.guard.trips.clear()
    desk.mailbox.forming(4)
    assert desk.guard.trips
    assert desk.guard.trips[0] > 4
    assert desk.mailbox.is_over(4)


def test_quit_ends_every_wait_and_breaks_what_is_on(desk: Desk) -> None:
    waits: list[object] = []
    threads = [
        threading.Thread(target=lambda: waits.append(desk.mailbox.wait_for_plan(newer_than=0))),
        threading.Thread(target=lambda: waits.append(desk.mailbox.wait_for_place(7))),
    ]
    for thread in threads:
        thread.start()
    desk.supervisor.send(Quit())
    for thread in threads:
        thread.join(10)
    assert waits == [None, None]
    assert desk.guard.trips
    assert desk.guard.trips[-1] > 10**9


def test_a_place_is_awaited_until_a_newer_plan_comes(desk: Desk) -> None:
    found: list[Rendezvous | None] = []
    thread = threading.Thread(target=lambda: found.append(desk.mailbox.wait_for_place(4)))
    thread.start()
    desk.place(3)
    desk.place(4)
    thread.join(10)
    assert found[0] is not None
    assert found[0].port == 4
    thread = threading.Thread(target=lambda: found.append(desk.mailbox.wait_for_place(5)))
    thread.start()
    desk.plan(6)
    thread.join(10)
    assert found[1] is None


def test_places_that_come_before_their_plan_are_kept_and_old_ones_dropped(desk: Desk) -> None:
    for revision in (1, 2, 3):
        desk.place(revision)
    desk.read()
    desk.mailbox.forming(3)
    assert list(desk.mailbox._places) == [3]
    assert desk.mailbox.wait_for_place(3) is not None


def test_the_end_of_the_link_is_the_end(desk: Desk) -> None:
    desk.supervisor.close()
    assert desk.orphaned.wait(10)


def test_so_is_news_that_cannot_be_read(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that is deaf could never be told to stop."""
    desk.raw.sendall(b'{"type": "from another version"}\n')
    assert desk.orphaned.wait(10)
    assert "cannot be read" in caplog.text


def test_after_its_own_end_it_does_not_care(desk: Desk) -> None:
    desk.mailbox.close()
    desk.supervisor.close()
    names = {thread.name for thread in threading.enumerate()}
    await_true(
        lambda: "parcae-mailbox" not in {t.name for t in threading.enumerate()},
        f"the reader ends; {names}",
    )
    assert not desk.orphaned.is_set()
