"""A planner that writes down what it was asked and what it said, and of which job and revision."""

from __future__ import annotations

import logging
import time

from parcae_api.planning import PlanAnswer, Planner, PlanRequest

_log = logging.getLogger(__name__)


class LoggedPlanner:
    """Asks another planner. What a question is about is in the log's context."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``."""
        begun_s = time.perf_counter()
        answer = self._planner.plan(request)
        at = f"{answer.layout.configuration}" if answer.layout is not None else "no layout"
        _log.info(
            "%s for %d workers, in %.0f ms: %s",
            at,
            request.num_workers,
            1000 * (time.perf_counter() - begun_s),
            answer.why,
        )
        return answer
