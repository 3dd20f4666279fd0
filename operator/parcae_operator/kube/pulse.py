"""Whether the board and the planner answer, asked now and then: a scrape must not wait for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from parcae_api.board_keys import ROOT
from parcae_api.errors import BoardError
from parcae_api.etcd import EtcdClient
from parcae_api.planning import Planner
from parcae_optimizer.client import PlannerClient

_log = logging.getLogger(__name__)

_EVERY_S = 5.0


class Pulse:
    """Asks on threads of its own, one each: one that is silent must not hide the other.

    Args:
        board: Of all jobs.
        planner: The service; None where there is none.
        every_s: Seconds between two questions.
    """

    def __init__(
        self, board: EtcdClient, planner: Planner | None, every_s: float = _EVERY_S
    ) -> None:
        self._board = board
        self._every_s = every_s
        self._stop = threading.Event()
        self.board_up: bool | None = None
        self.planner_up: bool | None = None
        self._start("board", self._ask_board)
        if isinstance(planner, PlannerClient):
            self._start("planner", lambda: self._ask_planner(planner))

    def close(self) -> None:
        """Ask no more. Does not wait for an answer that is under way."""
        self._stop.set()

    def _start(self, name: str, ask: Callable[[], None]) -> None:
        name = f"pulse-{name}"
        threading.Thread(target=self._run, args=(ask,), name=name, daemon=True).start()

    def _run(self, ask: Callable[[], None]) -> None:
        while not self._stop.is_set():
            try:
                ask()
            except Exception:
                _log.exception("whether it answers cannot be told")
            self._stop.wait(self._every_s)

    def _ask_board(self) -> None:
        try:
            self._board.get(ROOT)
        except BoardError:
            self.board_up = False
        else:
            self.board_up = True

    def _ask_planner(self, planner: PlannerClient) -> None:
        self.planner_up = planner.is_up()
