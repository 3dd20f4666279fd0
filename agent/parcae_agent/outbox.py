"""Writes to the board on a thread of their own: an absent etcd never holds the supervisor up.

Values that replace one another (membership, progress, profile) are coalesced: only the newest is
written. The rest (events, failures, meeting places) is written in order. Whatever the board
did not take stays and is tried again, within a bound.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from parcae_api.errors import BoardError, BoardRefused

_log = logging.getLogger(__name__)
_MOST_WAITING = 1000
_RETRY_SECONDS = 0.5
_IN_ORDER = "#"

Write = Callable[[], object]


class Outbox:
    """Pending writes."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: dict[str, Write] = {}
        self._counter = 0
        self._busy = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="parcae-outbox", daemon=True)
        self._thread.start()

    def replace(self, name: str, write: Write) -> None:
        """Write a value that replaces an older one of that name, if that still waits."""
        with self._condition:
            self._waiting.pop(name, None)
            self._put(name, write)

    def append(self, write: Write) -> None:
        """Write in order, every one. The oldest such is dropped when a thousand wait."""
        with self._condition:
            self._counter += 1
            self._put(f"{_IN_ORDER}{self._counter}", write)
            waiting = [name for name in self._waiting if name.startswith(_IN_ORDER)]
            if len(waiting) > _MOST_WAITING:
                del self._waiting[waiting[0]]

    @property
    def num_waiting(self) -> int:
        """What is not written yet. Waits for nothing."""
        return len(self._waiting)

    def flush(self, timeout_s: float) -> bool:
        """Wait until all is written; False when that takes too long."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    def close(self) -> None:
        """Drop what waits and end the thread with the write it is at."""
        with self._condition:
            self._closed = True
            self._waiting.clear()
            self._condition.notify_all()

    def _put(self, name: str, write: Write) -> None:
        self._waiting[name] = write
        self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                name = next(iter(self._waiting))
                write = self._waiting.pop(name)
                self._busy = True
            written = self._try(write)
            with self._condition:
                self._busy = False
                if not written and not self._closed and name not in self._waiting:
                    self._waiting = {name: write, **self._waiting}
                self._condition.notify_all()
                if not written:
                    self._condition.wait_for(lambda: self._closed, _RETRY_SECONDS)

    def _try(self, write: Write) -> bool:
        try:
            write()
        except BoardRefused:
            _log.exception("the board refuses a write; it is dropped")
        except BoardError as error:
            _log.info("the board did not take a write, trying again: %s", error)
            return False
        except Exception:  # a mistake of ours must not keep the rest from being written
            _log.exception("a write failed; it is dropped")
        return True
