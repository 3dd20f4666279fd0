"""Stop: how a background loop of the etcd client is told to end, whatever it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from parcae_api.etcd_fault import Stopped


class Stop:
    """Ends one loop: its pauses, and its call in flight."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._cancel: Callable[[], object] | None = None

    @property
    def is_set(self) -> bool:
        """Whether the loop is to end."""
        return self._event.is_set()

    def set(self) -> None:
        """End the loop. May be called from any thread, more than once."""
        with self._lock:
            self._event.set()
            cancel = self._cancel
        if cancel is not None:
            cancel()

    def pause(self, seconds: float) -> None:
        """Wait.

        Raises:
            Stopped: at once, when the loop is to end.
        """
        if self._event.wait(seconds):
            raise Stopped

    @contextmanager
    def cancelling(self, cancel: Callable[[], object]) -> Iterator[None]:
        """While inside, ``set`` calls ``cancel``; at once where it is set already."""
        with self._lock:
            self._cancel = cancel
            stopped = self._event.is_set()
        try:
            if stopped:
                cancel()
            yield
        finally:
            with self._lock:
                self._cancel = None
