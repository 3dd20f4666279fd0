"""The causal reference: best in expectation under its law, never past the known future."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_model import small_profile

from parcae_optimizer.tables import CostTables
from parcae_simulator.causal import Causal
from parcae_simulator.engine import Policy, Timing, replay
from parcae_simulator.models import find_model
from parcae_simulator.outcome import Outcome
from parcae_simulator.planned import KnownFuture, NoChange, Planned
from parcae_simulator.published import PublishedRules
from parcae_simulator.published_planner import PublishedPlanner
from parcae_simulator.scenario import Scenario, scenario_of
from parcae_simulator.simulate import Bench, Options
from parcae_traces import Series, find_trace

CAPACITY = 8
# Changes take seconds of a minute, so that when they are made matters.
RULES = PublishedRules(small_profile(process_ms=4000.0, rendezvous_ms=9000.0), capacity=CAPACITY)
TABLES = CostTables(RULES, CAPACITY, slowest_share=0.0, cuts=True)
PLANNER = PublishedPlanner(RULES, 60.0)
TIMINGS = pytest.mark.parametrize("timing", list(Timing))
Events = list[tuple[int, int]]


def stretch(first: int, events: Events) -> Scenario:
    """Begins with so many instances; then (added, removed) per interval."""
    counts, added, removed = [first], [first], [0]
    for join, leave in events:
        added.append(join)
        removed.append(min(leave, counts[-1]))
        counts.append(counts[-1] + added[-1] - removed[-1])
    series = Series(60.0, tuple(counts), tuple(added), tuple(removed))
    return Scenario("made", "part", series, 1, len(series), CAPACITY)


def causal(plays: Scenario, timing: Timing, law: Scenario | None = None) -> Outcome:
    return played(Causal(RULES, TABLES, law or plays, timing), plays, timing)


def played(policy: Policy, scenario: Scenario, timing: Timing) -> Outcome:
    return replay("p", policy, RULES, scenario, timing)


def known(scenario: Scenario) -> Outcome:
    return played(Planned(PLANNER, KnownFuture(scenario)), scenario, Timing.SEEN)


@TIMINGS
@pytest.mark.parametrize("event", [(0, 0), (1, 0), (0, 1)])
def test_what_is_certain_is_known(timing: Timing, event: tuple[int, int]) -> None:
    scenario = stretch(4, [event] * 4)
    assert causal(scenario, timing).samples == pytest.approx(known(scenario).samples)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from([(0, 0), (0, 1), (1, 0), (0, 2), (2, 0)]), min_size=2, max_size=7))
def test_it_never_passes_the_known_future(events: Events) -> None:
    scenario = stretch(5, events)
    if max(scenario.counts) > CAPACITY or min(scenario.counts) < 1:
        return
    bound = known(scenario).samples + 1e-6
    assert all(causal(scenario, timing).samples <= bound for timing in Timing)


@TIMINGS
def test_over_all_that_its_law_may_bring_it_is_as_expected_and_the_best(timing: Timing) -> None:
    events = [(0, 0), (0, 1), (1, 0)]
    law = stretch(4, events)
    paths = [stretch(4, list(path)) for path in product(events, repeat=3)]
    found = [causal(path, timing, law).samples for path in paths]
    calm = [played(Planned(PLANNER, NoChange()), path, timing).samples for path in paths]
    expected = float(Causal(RULES, TABLES, law, timing).note.rsplit(" ", 1)[1])
    assert sum(found) / len(found) == pytest.approx(expected, abs=0.5)
    assert sum(found) >= sum(calm) - 1e-6


def test_a_recorded_hour_twice() -> None:
    options = Options(policies=("known", "causal"))
    hour = replace(scenario_of(find_trace("p3"), "hadp"), stop=360)
    once, again = (Bench(find_model("vgg19"), options, 32).outcomes(hour) for _ in range(2))
    assert [o.samples for o in once] == [o.samples for o in again]
    best, seen, before = (o.samples for o in once)
    assert best >= seen >= before > 0.8 * best
    assert all(o.note.startswith("expected under its law: ") for o in once[1:])


def test_a_long_recording_has_no_single_expectation() -> None:
    scenario = stretch(4, [(0, 0)] * 70)
    assert Causal(RULES, TABLES, scenario, Timing.SEEN).note == ""
    assert causal(scenario, Timing.SEEN).samples == pytest.approx(known(scenario).samples)
