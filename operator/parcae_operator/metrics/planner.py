"""A planner whose questions are timed, and whose newest answer can be looked up."""

from __future__ import annotations

import time
from collections.abc import Callable

from parcae_api.planning import PlanAnswer, Planner, PlanRequest


class MeteredPlanner:
    """Asks another planner.

    Args:
        planner: Whom.
        told: Takes the seconds of each question, failed ones included.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        planner: Planner,
        told: Callable[[float], None],
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._planner = planner
        self._told = told
        self._clock = clock
        self.newest: PlanAnswer | None = None
        """To a question about the instances that are there; None before the first. Questions about
        what could be (could it ever train?) come without a history."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``."""
        begun_s = self._clock()
        try:
            answer = self._planner.plan(request)
        finally:
            self._told(self._clock() - begun_s)
        if request.history is not None:
            self.newest = answer
        return answer
