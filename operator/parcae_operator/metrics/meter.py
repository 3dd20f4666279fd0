"""What only this process counts: times of planning questions, notices. Thread-safe."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from parcae_api.events import NoticeGiven
from parcae_operator.metrics.fleet_catalog import NOTICE_LEAD, NOTICES, PLAN_SECONDS
from parcae_operator.metrics.sources import POD_PREFIX, SEVERITIES, SIGTERM, told_as
from parcae_operator.signals import NodeState, Severity

_PLAN_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_LEAD_S = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 900.0)
"""Clouds give 30 s or two minutes; hours come from maintenance that is announced."""


class Meter:
    """One operator's.

    Args:
        registry: Where its metrics are told; one of its own if none is given.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._plan_seconds = Histogram(
            PLAN_SECONDS.name, PLAN_SECONDS.help, buckets=_PLAN_S, registry=self.registry
        )
        self._lead_seconds = Histogram(
            NOTICE_LEAD.name, NOTICE_LEAD.help, buckets=_LEAD_S, registry=self.registry
        )
        self._notices = Counter(NOTICES.name, NOTICES.help, NOTICES.labels, registry=self.registry)

    def planned(self, seconds: float) -> None:
        """A planning question was answered, or failed."""
        self._plan_seconds.observe(seconds)

    def worsened(self, state: NodeState) -> None:
        """A node stands worse than before."""
        self._notices.labels(told_as(state.source), SEVERITIES[state.severity]).inc()

    def noticed(self, notice: NoticeGiven) -> None:
        """An instance of a job was given notice. That of its node was counted with the node."""
        self._lead_seconds.observe(max(0.0, notice.deadline_unix_s - notice.at_unix_s))
        if notice.source == SIGTERM or notice.source.startswith(POD_PREFIX):
            severity = SEVERITIES[Severity.DOOMED]
            self._notices.labels(told_as(notice.source), severity).inc()
