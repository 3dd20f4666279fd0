"""A planner that always answers."""

from __future__ import annotations

import itertools

import pytest
from control_world import World, make_profile

from parcae_api.errors import InputError, ParcaeError, PlannerUnavailable
from parcae_api.planning import PlanAnswer, PlanRequest
from parcae_operator.fallback import FIRST_PAUSE_S, LONGEST_PAUSE_S, FallbackPlanner
from parcae_optimizer.reactive import ReactivePlanner

REQUEST = PlanRequest(profile=make_profile(6), num_workers=2)


class Service:
    """A planner service that can be away."""

    def __init__(self) -> None:
        self.error: ParcaeError | None = None
        self.asked = 0

    def plan(self, request: PlanRequest) -> PlanAnswer:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return PlanAnswer(layout=None, why="the service's")


class Site:
    def __init__(self) -> None:
        self.now = 0.0
        self.service = Service()
        self.planner = FallbackPlanner(self.service, ReactivePlanner(), clock=lambda: self.now)

    def ask(self) -> str:
        return self.planner.plan(REQUEST).why


def test_the_service_is_asked_first() -> None:
    site = Site()
    assert site.ask() == "the service's"
    assert site.planner.trouble == ""


@pytest.mark.parametrize(
    "error", [PlannerUnavailable("no answer"), InputError("the profile is of another version")]
)
def test_without_the_service_plans_are_reactive_and_say_so(error: ParcaeError) -> None:
    site = Site()
    site.service.error = error
    assert site.ask().endswith("(without the planner's forecast)")
    assert site.planner.trouble == f"plans are reactive until the planner answers: {error}"


def test_a_service_that_is_away_is_asked_more_and_more_rarely() -> None:
    site = Site()
    site.service.error = PlannerUnavailable("no answer")
    asked_at = []
    while site.now < 300:
        before = site.service.asked
        site.ask()
        if site.service.asked > before:
            asked_at.append(site.now)
        site.now += 0.5
    gaps = [later - sooner for sooner, later in itertools.pairwise(asked_at)]
    assert gaps[:5] == [FIRST_PAUSE_S * 2**k for k in range(5)]
    assert set(gaps[5:]) == {LONGEST_PAUSE_S}


def test_when_it_answers_again_all_is_as_before() -> None:
    site = Site()
    site.service.error = PlannerUnavailable("no answer")
    for _ in range(5):
        site.ask()
        site.now += LONGEST_PAUSE_S
    site.service.error = None
    assert site.ask() == "the service's"
    assert site.planner.trouble == ""
    site.service.error = PlannerUnavailable("no answer")
    site.ask()
    site.now += FIRST_PAUSE_S  # the pauses begin anew
    site.service.error = None
    assert site.ask() == "the service's"


def test_an_operator_without_a_service_misses_nothing() -> None:
    planner = FallbackPlanner(None, ReactivePlanner())
    assert planner.plan(REQUEST) == ReactivePlanner().plan(REQUEST)
    assert planner.trouble == ""


def test_a_mistake_in_the_service_is_not_hidden() -> None:
    class Broken:
        def plan(self, request: PlanRequest) -> PlanAnswer:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        FallbackPlanner(Broken(), ReactivePlanner()).plan(REQUEST)


def test_the_controller_plans_on_without_the_service() -> None:
    site = Site()
    site.service.error = PlannerUnavailable("no answer")
    from parcae_operator.actions import PublishPlan
    from parcae_operator.controller import decide

    actions = decide(World().ready("a", "b").observe(), site.planner)
    (published,) = (action for action in actions if isinstance(action, PublishPlan))
    assert "without the planner's forecast" in published.plan.why
