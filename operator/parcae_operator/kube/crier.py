"""Tells people what happens to a job, as Events on it: best effort, and never twice."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any

from parcae_api.events import AnyEvent
from parcae_api.job import ParcaeJob
from parcae_api.job_status import ConditionType, JobStatus
from parcae_operator.kube.errors import ClusterError, ClusterUnavailable
from parcae_operator.kube.services import Services
from parcae_operator.kube.tell import tell, tell_condition

_log = logging.getLogger(__name__)

_MOST_WAITING = 100
_OF_THE_STATUS = (ConditionType.READY, ConditionType.PROGRESSING)
"""These flip with every plan, of which there is an Event of its own."""


class Crier:
    """One job's. Takes events from any thread, sends them from the event loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._since_unix_s = time.time()
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_MOST_WAITING)

    def happened(self, job: ParcaeJob, event: AnyEvent) -> None:
        """Something happened; what was before this operator's time has been told."""
        if event.at_unix_s < self._since_unix_s:
            return
        if (told := tell(job, event, self._services.settings.identity)) is not None:
            self._waiting.append(told)

    def flipped(self, job: ParcaeJob, before: JobStatus, after: JobStatus) -> None:
        """The status is another."""
        for condition in after.conditions:
            old = before.condition(condition.type)
            flipped = old is None or old.status != condition.status
            is_news = condition.status == "True" or old is not None
            if flipped and is_news and condition.type not in _OF_THE_STATUS:
                reporter = self._services.settings.identity
                self._waiting.append(tell_condition(job, condition, reporter))

    async def send(self) -> None:
        """Send what waits. An Event that is refused is dropped.

        Raises:
            ClusterUnavailable: the rest waits on.
        """
        while self._waiting:
            event = self._waiting.popleft()
            try:
                await self._services.api.create_event(event["metadata"]["namespace"], event)
            except ClusterUnavailable:
                self._waiting.appendleft(event)
                raise
            except ClusterError as error:
                _log.info("an event on %s was not written: %s", event["regarding"]["name"], error)
