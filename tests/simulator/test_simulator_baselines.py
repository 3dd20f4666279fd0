"""Other systems' rules: single events, what must hold in any replay, and known shares."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
import pytest
from small_model import small_profile

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.baselines.bamboo import Bamboo, _shadows_hit, redundant_depth
from parcae_simulator.baselines.common import (
    Baseline,
    Event,
    Notices,
    Saving,
    Setting,
    Store,
    replay_baseline,
)
from parcae_simulator.baselines.oobleck import Oobleck, OobleckJoins
from parcae_simulator.baselines.torchft import Torchft
from parcae_simulator.baselines.torchrun import Torchrun
from parcae_simulator.baselines.varuna import Varuna
from parcae_simulator.profiles import find_profile
from parcae_simulator.registry import SYSTEMS
from parcae_simulator.scenario import Scenario, scenario_of
from parcae_traces import Series, find_trace

NOBODY: frozenset[int] = frozenset()


def still(count: int, intervals: int = 10) -> Scenario:
    """So many from the start, and no event."""
    nothing = (0,) * (intervals - 1)
    series = Series(60.0, (count,) * intervals, (count, *nothing), (0, *nothing))
    return Scenario("still", "all", series, 0, intervals, count)


@cache
def setting(model: str, segment: str, notices: Notices, store: Store) -> Setting:
    return Setting(find_profile(model), scenario_of(find_trace("p3"), segment), notices, store)


@cache
def share(
    system: type[Baseline], model: str, segment: str, notices: Notices, store: Store
) -> float:
    at = setting(model, segment, notices, store)
    best = (at.profile.best(count) for count in at.scenario.counts)
    possible = sum(at.profile.speed(grid) * 60 for grid in best if grid)
    return replay_baseline(system, at).samples / possible


@pytest.mark.parametrize("system", SYSTEMS.values())
@pytest.mark.parametrize("notices", Notices)
@pytest.mark.parametrize("store", Store)
def test_without_events_only_the_start_costs(
    system: type[Baseline], notices: Notices, store: Store
) -> None:
    profile = small_profile()
    at = Setting(profile, still(9), notices, store)
    found = replay_baseline(system, at, draws=2)
    assert len(set(found.layouts)) == 1
    assert found.lost_samples == 0
    assert found.samples_deviation == 0
    assert 0 < found.paused_s < 60
    fastest = max(profile.samples_per_second.values())
    assert 0.5 * fastest * 600 < found.samples <= fastest * 600


@pytest.mark.parametrize("system", SYSTEMS.values())
def test_the_same_seed_draws_the_same(system: type[Baseline]) -> None:
    at = setting("bert", "ladp", Notices.SUDDEN, Store.SERIAL)
    first, second = (replay_baseline(system, at, draws=2, seed=3) for _ in range(2))
    assert first.samples == second.samples
    other = replay_baseline(system, at, draws=2, seed=4)
    assert other.instances == first.instances


@pytest.mark.parametrize("system", SYSTEMS.values())
@pytest.mark.parametrize("model", ["gpt-6.7b", "vgg19"])
def test_notices_and_faster_stores_never_hurt(system: type[Baseline], model: str) -> None:
    shares = {
        (notices, store): share(system, model, "hadp", notices, store)
        for notices in Notices
        for store in Store
    }
    for store in Store:
        assert shares[Notices.NOTICED, store] >= shares[Notices.SUDDEN, store] - 0.01
    for notices in Notices:
        assert shares[notices, Store.PARALLEL] >= shares[notices, Store.SERIAL] - 0.01


# Shares by another implementation of the same rules, with its own draws.
@pytest.mark.parametrize(
    ("model", "segment", "serial", "parallel", "bamboo"),
    [
        ("gpt-6.7b", "hadp", 0.59, 0.91, 0.41),
        ("gpt-6.7b", "hasp", 0.83, 0.95, 0.52),
        ("gpt-6.7b", "ladp", 0.49, 0.87, 0.05),
        ("gpt-6.7b", "lasp", 0.86, 0.97, 0.0),
        ("gpt-1.5b", "hadp", 0.78, 0.92, 0.69),
        ("gpt-1.5b", "ladp", 0.73, 0.90, 0.58),
        ("bert", "hadp", 0.90, 0.96, 0.74),
        ("vgg19", "hadp", 0.88, 0.94, 0.43),
    ],
)
def test_varuna_and_bamboo_agree_with_another_implementation(
    model: str, segment: str, serial: float, parallel: float, bamboo: float
) -> None:
    noticed = Notices.NOTICED
    assert share(Varuna, model, segment, noticed, Store.SERIAL) == pytest.approx(serial, abs=0.015)
    found = share(Varuna, model, segment, noticed, Store.PARALLEL)
    assert found == pytest.approx(parallel, abs=0.015)
    assert share(Bamboo, model, segment, noticed, Store.PARALLEL) == pytest.approx(bamboo, abs=0.03)


def small(system: type[Baseline], count: int, notices: Notices = Notices.NOTICED) -> Baseline:
    baseline = system(Setting(small_profile(), still(count), notices, Store.SERIAL))
    baseline.react(Event(0, count, 0, count, NOBODY, True))
    baseline.trained(30.0, 30.0 * baseline.speed())
    return baseline


def lose(baseline: Baseline, before: int, *victims: int) -> tuple[float, float]:
    gone = len(victims)
    event = Event(before, 0, gone, before - gone, frozenset(victims), False)
    return tuple(baseline.react(event))  # type: ignore[return-value]


def test_spare_hits_are_free_but_for_torchrun() -> None:
    # 11 workers: every layout here is two replicas of five, or one below that, or eleven of one.
    profile = small_profile(
        samples_per_second={"2x5": 9.0, "1x5": 4.0}, stages={"min": 5, "max": 5}
    )
    for system in (Varuna, Torchft, Torchrun):
        baseline = system(Setting(profile, still(11)))
        baseline.react(Event(0, 11, 0, 11, NOBODY, True))
        assert baseline.grid == Grid(2, 5)
        pause_s, _ = lose(baseline, 11, 10)
        assert (pause_s > 0) is (system is Torchrun)
        assert baseline.grid == Grid(2, 5)


def test_a_sudden_loss_rolls_varuna_back_and_a_noticed_one_does_not() -> None:
    noticed, sudden = (small(Varuna, 6, notices) for notices in Notices)
    noticed_pause_s, none = lose(noticed, 6, 0)
    sudden_pause_s, lost = lose(sudden, 6, 0)
    assert none == 0
    assert lost > 0
    assert noticed_pause_s == sudden_pause_s > 14


def test_everybody_gone_stops_and_comes_back() -> None:
    for system in SYSTEMS.values():
        baseline = small(system, 6)
        event = Event(6, 0, 6, 0, frozenset(range(6)), False)
        assert baseline.react(event).pause_s == 0, system
        assert baseline.grid == NOTHING
        assert baseline.speed() == 0
        back = baseline.react(Event(0, 6, 0, 6, NOBODY, False))
        assert back.pause_s > 0
        assert baseline.speed() > 0


def test_bamboo_dies_of_neighbours_only() -> None:
    grid = Grid(2, 4)
    assert _shadows_hit(grid, NOBODY) == (False, False)
    assert _shadows_hit(grid, frozenset({0, 2})) == (False, False)
    assert _shadows_hit(grid, frozenset({0, 1})) == (True, False)
    assert _shadows_hit(grid, frozenset({3, 0})) == (True, False)
    assert _shadows_hit(grid, frozenset({3, 4})) == (False, False)
    assert _shadows_hit(grid, frozenset({0, 1, 4, 5})) == (True, True)
    assert _shadows_hit(grid, frozenset({0, 1, 6, 7})) == (True, False)


def test_bamboos_chance_of_neighbours_is_the_closed_form() -> None:
    grid, hits, draws = Grid(3, 5), 4, 4000
    ways = [1.0]
    pipeline = [5 / (5 - i) * comb(5 - i, i) for i in range(3)]
    for _ in range(grid.data):
        ways = np.convolve(ways, pipeline).tolist()
    safe = ways[hits] / comb(grid.workers, hits)
    rng = np.random.default_rng(1)
    drawn = [
        not _shadows_hit(grid, frozenset(rng.choice(grid.workers, hits, replace=False).tolist()))[0]
        for _ in range(draws)
    ]
    assert np.mean(drawn) == pytest.approx(safe, abs=4 * (safe * (1 - safe) / draws) ** 0.5)


def test_bamboo_holds_two_copies() -> None:
    at = setting("gpt-6.7b", "lasp", Notices.NOTICED, Store.SERIAL)
    assert redundant_depth(at) == 24
    assert replay_baseline(Bamboo, at, draws=2).samples == 0


def test_oobleck_uses_joiners_at_the_next_loss_only() -> None:
    for system, takes in ((Oobleck, False), (OobleckJoins, True)):
        baseline = small(system, 6)
        slow = baseline.speed()
        baseline.react(Event(6, 2, 0, 8, NOBODY, False))
        assert (baseline.speed() > slow) is takes
        lose(baseline, 8, 0)
        assert baseline.speed() > slow


def test_torchft_trains_on_with_the_groups_that_live() -> None:
    profile = small_profile(
        samples_per_second={"3x2": 9.0, "2x2": 6.0, "1x2": 3.0}, stages={"min": 2, "max": 2}
    )
    baseline = Torchft(Setting(profile, still(7)))
    baseline.react(Event(0, 7, 0, 7, NOBODY, True))
    baseline.trained(600.0, 5400.0)
    pause_s, lost = lose(baseline, 7, 0)
    # One of seven was spare: it fills the broken group, which forms beside the other two.
    assert baseline.grid == Grid(3, 2)
    forming_s, meanwhile = baseline.degraded()
    assert 1 < pause_s < 2
    assert lost == profile.global_batch_samples / 2
    assert (forming_s > 0, meanwhile) == (True, 6.0)
    baseline.trained(60.0, 0.0)
    assert baseline.degraded()[0] == 0


def test_a_rollback_loses_what_was_trained_at_whatever_speed() -> None:
    saving = Saving(Setting(small_profile(), still(6)))
    saving.trained(Grid(3, 2), 30.0, 270.0, every_s=600.0)
    saving.trained(Grid(1, 2), 1.0, 3.0, every_s=600.0)
    assert saving.since(Grid(1, 2)) == 273.0
    assert saving.since(Grid(1, 2)) == 0.0


def test_fixed_depths_fit_the_scenario() -> None:
    at = setting("gpt-6.7b", "lasp", Notices.NOTICED, Store.SERIAL)
    assert at.fixed_depth == 13
    assert small(Torchrun, 6).note() == f"depth {Setting(small_profile(), still(6)).fixed_depth}"
