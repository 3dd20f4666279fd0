"""Ctrl-C and its kin, counted instead of raised in the middle of anything."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_Handler = Callable[[int, FrameType | None], Any] | int | None


class Interrupts:
    """Counts while it is entered. The first asks for an orderly end, the second for any end."""

    def __init__(self) -> None:
        self.count = 0
        self._before: dict[signal.Signals, _Handler] = {}

    def __enter__(self) -> Self:
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:  # as under nohup
                self._before[each] = signal.signal(each, self._take)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
