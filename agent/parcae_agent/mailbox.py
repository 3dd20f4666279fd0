"""What a worker has been told: the newest plan, meeting places, whether to quit.

A reader thread fills it from the supervisor's link while the main thread trains. Here, and only
here, it is decided that news breaks the running epoch instead of waiting for a step's end.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable

from parcae_agent.breaker import EpochGuard
from parcae_agent.link import Link, MeetingPlace, Ping, PlanNews, Pong, Quit
from parcae_api.plan import Plan, Rendezvous

_log = logging.getLogger(__name__)


class Mailbox:
    """News from the supervisor."""

    def __init__(
        self, link: Link, guard: EpochGuard, on_ping: Callable[[], None] = lambda: None
    ) -> None:
        """``on_ping`` is called once a second, from the reader's thread."""
        self._link = link
        self._guard = guard
        self._condition = threading.Condition()
        self._plan: Plan | None = None
        self._places: dict[int, Rendezvous] = {}
        self._on_ping = on_ping
        self._quit = False
        self._forming = False
        self._on_orphaned: Callable[[], None] = lambda: os._exit(0)
        threading.Thread(target=self._read, name="parcae-mailbox", daemon=True).start()

    @property
    def newest_revision(self) -> int:
        """Revision of the newest plan seen, 0 before the first."""
        plan = self._plan
        return plan.revision if plan else 0

    def wait_for_plan(self, newer_than: int) -> Plan | None:
        """The newest plan, once it is newer than a revision; None when told to quit."""
        with self._condition:
            self._condition.wait_for(lambda: self._quit or self.newest_revision > newer_than)
            return None if self._quit else self._plan

    def wait_for_place(self, revision: int) -> Rendezvous | None:
        """Where a revision meets; None when a newer plan comes first, or on quit."""

        def settled() -> bool:
            return revision in self._places or self.is_over(revision)

        with self._condition:
            self._condition.wait_for(settled)
            return self._places.get(revision)

    def is_over(self, revision: int) -> bool:
        """Whether nobody needs a revision to form any more."""
        return self._quit or self.newest_revision > revision

    def forming(self, revision: int) -> None:
        """A revision begins to form: from now on any newer plan breaks it."""
        with self._condition:
            self._forming = True
            self._places = {r: place for r, place in self._places.items() if r >= revision}
        if self.is_over(revision):
            self._guard.trip(older_than=revision + 1)

    def formed(self) -> None:
        """It has formed: from now on only sudden news breaks it."""
        with self._condition:
            self._forming = False

    def _read(self) -> None:
        """Serve until the supervisor is gone or cannot be understood.

        With it the board is gone: nobody could ever tell this worker anything again, and its
        peers must see its connections close.
        """
        try:
            self._serve()
        except Exception:
            _log.exception("the supervisor's news cannot be read")
        self._on_orphaned()

    def close(self) -> None:
        """The worker ends by itself, with an exit code of its own."""
        self._on_orphaned = lambda: None

    def _serve(self) -> None:
        for message in self._link.messages():
            match message:
                case PlanNews(plan=plan):
                    self._accept(plan)
                case MeetingPlace(rendezvous=place):
                    with self._condition:
                        self._places[place.revision] = place
                        self._condition.notify_all()
                case Ping():
                    self._link.send(Pong())
                    self._on_ping()
                case Quit():
                    with self._condition:
                        self._quit = True
                        self._condition.notify_all()
                    self._guard.trip(older_than=2**62)

    def _accept(self, plan: Plan) -> None:
        with self._condition:
            if plan.revision <= self.newest_revision:
                return
            self._plan = plan
            breaks = self._forming or plan.reason.breaks_the_epoch
            self._condition.notify_all()
        if breaks:
            self._guard.trip(older_than=plan.revision)
