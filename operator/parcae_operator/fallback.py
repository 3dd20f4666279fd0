"""A planner that always answers: the service's answer, or a reactive one while it is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from parcae_api.errors import InputError, PlannerUnavailable
from parcae_api.planning import PlanAnswer, Planner, PlanRequest

_log = logging.getLogger(__name__)

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class FallbackPlanner:
    """Asks ``first``; while that does not answer, ``second``. For one thread.

    Without a ``first`` there is nothing to miss: that is how the operator was set up.

    A service that is away is asked again after a pause that doubles, so a decision waits for it
    once and not every time.
    """

    def __init__(
        self, first: Planner | None, second: Planner, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._first = first
        self._second = second
        self._clock = clock
        self._pause_s = 0.0
        self._again_s = 0.0
        self.trouble = ""
        """Why plans are reactive, for people; empty while the service answers."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``."""
        if self._first is None:
            return self._second.plan(request)
        if self._clock() >= self._again_s:
            try:
                answer = self._first.plan(request)
            except (PlannerUnavailable, InputError) as error:
                self._failed(error)
            else:
                if self.trouble:
                    _log.info("the planner answers again")
                self._pause_s, self._again_s, self.trouble = 0.0, 0.0, ""
                return answer
        answer = self._second.plan(request)
        return answer.model_copy(update={"why": f"{answer.why} (without the planner's forecast)"})

    def _failed(self, error: PlannerUnavailable | InputError) -> None:
        if not self.trouble:
            _log.warning("plans are reactive: %s", error)
        self.trouble = f"plans are reactive until the planner answers: {error}"
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s or FIRST_PAUSE_S)
        self._again_s = self._clock() + self._pause_s
