"""Retry: how long, how often and with which pauses a call is tried again."""

from __future__ import annotations

import random
import time

from parcae_api.errors import BoardRefused, BoardUnavailable
from parcae_api.etcd_fault import Fault, FaultKind
from parcae_api.etcd_stop import Stop
from parcae_api.etcd_words import plain

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_SHORTEST_TRY_S = 0.005


class Tries:
    """The tries of one call. Asks for time before each, and for permission after each failure.

    Args:
        patience_s: All tries and pauses together take no longer; may be infinite.
        timeout_s: The longest single try.
        spare_endpoints: How many failures may be followed at once by a try somewhere else.
        stop: Ends the pauses.
    """

    def __init__(
        self, patience_s: float, timeout_s: float, spare_endpoints: int, stop: Stop | None
    ) -> None:
        self._patience_s = patience_s
        self._deadline_s = time.monotonic() + patience_s
        self._timeout_s = timeout_s
        self._spare_endpoints = spare_endpoints
        self._stop = stop or Stop()
        self.succeeded()

    def succeeded(self) -> None:
        """Forget the failures so far."""
        self._failures = 0
        self._fresh_tokens = 0

    def time_for_one_s(self) -> float:
        """The time limit of the next try, in seconds."""
        return max(_SHORTEST_TRY_S, min(self._timeout_s, self._deadline_s - time.monotonic()))

    def failed(self, fault: Fault) -> None:
        """Wait before the next try.

        Raises:
            BoardRefused: another try would not help.
            BoardUnavailable: the time is over.
            Stopped: the loop that tries is to end.
        """
        if fault.kind is FaultKind.UNAUTHENTICATED and not self._fresh_tokens:
            self._fresh_tokens += 1  # the token was dropped, the next try gets another
            return
        if not fault.blames_endpoint:
            raise BoardRefused(f"etcd refused: {plain(fault.detail)}") from fault
        self._failures += 1
        left_s = self._deadline_s - time.monotonic()
        if left_s < 2 * _SHORTEST_TRY_S:
            raise BoardUnavailable(
                f"etcd did not answer within {self._patience_s:g} s: {plain(fault.detail)}"
            ) from fault
        if self._failures > self._spare_endpoints:
            self._stop.pause(min(self._next_pause_s(), left_s / 2))

    def _next_pause_s(self) -> float:
        exponent = min(16, self._failures - self._spare_endpoints - 1)
        return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**exponent) * random.uniform(0.5, 1.0)
