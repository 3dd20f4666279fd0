"""The planner service's own metrics. Names, types and help are data: docs/metrics.md shows them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest

SECONDS = "parcae_planner_seconds"
WAITING = "parcae_planner_waiting_seconds"
REQUESTS = "parcae_planner_requests_total"
HELP = {
    SECONDS: "Time to work an answer out, without waiting for other requests.",
    WAITING: "Time a request waited for others: they are worked on one after the other.",
    REQUESTS: "Requests by outcome: answered, refused (a wrong request), failed (a fault of ours).",
}
_BUCKETS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_KINDS = {"/v1/plan": "plan", "/v1/forecast": "forecast"}
_OUTCOMES = ("answered", "refused", "failed")


class ServiceMeter:
    """One service's. Thread-safe."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds, self._waiting = (
            Histogram(name, HELP[name], ["kind"], buckets=_BUCKETS_S, registry=self._registry)
            for name in (SECONDS, WAITING)
        )
        self._requests = Counter(
            REQUESTS, HELP[REQUESTS], ["kind", "outcome"], registry=self._registry
        )
        # From 0: a counter that appears with a 1 tells no increase.
        for kind in _KINDS.values():
            self._seconds.labels(kind)
            self._waiting.labels(kind)
            for outcome in _OUTCOMES:
                self._requests.labels(kind, outcome)

    @contextmanager
    def working(self, kind: str, arrived_s: float) -> Iterator[None]:
        """Around the work on one request.

        Args:
            kind: ``plan`` or ``forecast``.
            arrived_s: When it came in, by ``time.perf_counter``.
        """
        begun_s = time.perf_counter()
        self._waiting.labels(kind).observe(begun_s - arrived_s)
        try:
            yield
        finally:
            self._seconds.labels(kind).observe(time.perf_counter() - begun_s)

    def ended(self, path: str, status: int) -> None:
        """A request has got its answer; those to other paths are not counted."""
        if (kind := _KINDS.get(path)) is None:
            return
        outcome = _OUTCOMES[0 if status < 400 else 1 if status < 500 else 2]
        self._requests.labels(kind, outcome).inc()

    def text(self) -> bytes:
        """For Prometheus."""
        return generate_latest(self._registry)
