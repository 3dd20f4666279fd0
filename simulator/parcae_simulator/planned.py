"""Policies that plan with the published programme; they differ by what they expect to come."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from parcae_optimizer.rules import Grid
from parcae_predictor.published import PublishedForecaster
from parcae_simulator.engine import View
from parcae_simulator.published_planner import Events, PublishedPlanner
from parcae_simulator.scenario import Scenario

HORIZON = 12
"""Intervals that the published planner looks ahead."""
LEAST_EXPECTED = 8
"""The published predictor never expects fewer instances."""


class Outlook(Protocol):
    """What a policy expects."""

    def expect(self, view: View) -> Events:
        """Added and removed per coming interval, this one first."""
        ...


class Planned:
    """Plans anew each interval with what its outlook expects."""

    def __init__(self, planner: PublishedPlanner, outlook: Outlook) -> None:
        self._planner = planner
        self._outlook = outlook

    def decide(self, view: View) -> Grid:
        """See ``Policy``."""
        events = self._outlook.expect(view)
        return self._planner.plan(view.before, view.layout, view.owed_s, events)


class KnownFuture:
    """The real events, this one included, up to the end of the scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def expect(self, view: View) -> Events:
        """See ``Outlook``."""
        stop = min(view.index + HORIZON, self._scenario.stop)
        return [self._scenario.event(index) for index in range(view.index, stop)]


class NoChange:
    """Nothing more comes."""

    def expect(self, view: View) -> Events:
        """See ``Outlook``."""
        events = [(0, 0)] * HORIZON
        if view.event is not None:
            events[0] = view.event
        return events


class PublishedForecast:
    """The published predictor; where this interval's event is seen, that comes first.

    Keeps the predictor's damping, so one serves one replay, in order.
    """

    def __init__(self, capacity: int, least_instances: int = 1, seed: int | None = None) -> None:
        """Set up for one replay.

        Args:
            capacity: Never more are expected.
            least_instances: The smallest layout: expectations below it are left out.
            seed: Draws the predictor's random removals; None: there are none.
        """
        lower = min(LEAST_EXPECTED, capacity)
        floor = least_instances if least_instances > lower else None
        self._forecaster = PublishedForecaster(lower=lower, upper=capacity, floor=floor)
        self._rng = None if seed is None else np.random.default_rng(seed)

    def expect(self, view: View) -> Events:
        """See ``Outlook``."""
        series = view.history
        added, removed = self._forecaster.forecast(series.available, series.removed, self._rng)
        events = list(zip(added, removed, strict=True))
        return events if view.event is None else [view.event, *events[: HORIZON - 1]]
