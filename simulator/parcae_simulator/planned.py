"""Policies that plan with the published programme; they differ by what they expect to come."""

from __future__ import annotations

from typing import Protocol

from parcae_optimizer.rules import Grid
from parcae_simulator.engine import View
from parcae_simulator.published_planner import Events, PublishedPlanner
from parcae_simulator.scenario import Scenario
from parcae_traces import Series

HORIZON = 12
"""Intervals that the published planner looks ahead."""


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


class EventForecaster(Protocol):
    """Forecasts one list of events. Asked once per interval in order: it may remember."""

    def forecast(self, series: Series) -> Events:
        """Added and removed for HORIZON coming intervals, from all intervals so far."""
        ...


class Forecast:
    """What a forecaster expects; where this interval's event is seen, that comes first."""

    def __init__(self, forecaster: EventForecaster) -> None:
        self._forecaster = forecaster

    def expect(self, view: View) -> Events:
        """See ``Outlook``."""
        events = list(self._forecaster.forecast(view.history))
        return events if view.event is None else [view.event, *events[: HORIZON - 1]]
