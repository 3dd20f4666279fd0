"""Live migration on the published profiles, and recorded profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_api.errors import InputError
from parcae_api.profile import LayerProfile, Profile
from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.live import LiveRules
from parcae_simulator.models import RuleSet, find_model
from parcae_simulator.profiles import find_profile
from parcae_simulator.scenario import scenario_of
from parcae_simulator.simulate import Bench, Options
from parcae_traces import find_trace

GPT = find_profile("gpt-6.7b")


def seconds(rules: LiveRules, instances: int, before: Grid, removed: int, after: Grid) -> float:
    return float(rules.change_seconds(instances, before, removed, (after,))[0])


def test_intra_stage_costs_a_regroup_and_nothing_costs_nothing() -> None:
    rules = LiveRules(find_profile("bert"))
    assert seconds(rules, 32, Grid(8, 4), 0, Grid(8, 4)) == 0
    assert seconds(rules, 32, Grid(8, 4), 0, Grid(7, 4)) == pytest.approx(0.1)
    assert seconds(rules, 32, Grid(8, 4), 0, NOTHING) == 0


def test_moving_costs_its_bytes() -> None:
    rules = LiveRules(GPT)
    largest_s = 4 * 201_379_840 * 12 / (1073741824 / 1.1982559)
    moved_s = seconds(rules, 28, Grid(2, 12), 1, Grid(2, 12))
    # A spare takes the place of a victim: one stage moves, unless a spare was the victim.
    assert 0.1 * 24 / 28 < moved_s < 0.1 + largest_s


def test_joiners_start_beside_the_training() -> None:
    rules = LiveRules(GPT)
    waits_s = seconds(rules, 23, Grid(1, 16), 0, Grid(2, 12))
    there_s = seconds(rules, 24, Grid(1, 16), 0, Grid(2, 12))
    start_s = (GPT.process_ms + GPT.rendezvous_ms + GPT.restart_extra_ms + 7961) / 1000
    gain = 1 - GPT.speed(Grid(1, 16)) / GPT.speed(Grid(2, 12))
    assert waits_s - there_s == pytest.approx(start_s * gain)
    first_s = seconds(rules, 0, NOTHING, 0, Grid(2, 12))
    assert first_s > start_s


def test_a_sudden_loss_of_a_stage_rolls_back() -> None:
    noticed, sudden = LiveRules(GPT), LiveRules(GPT, sudden=True)
    case = (13, Grid(1, 13), 1, Grid(1, 12))
    assert seconds(sudden, *case) > seconds(noticed, *case) + 30
    serial = LiveRules(GPT, sudden=True, serial_store=True)
    assert seconds(serial, *case) > seconds(sudden, *case) + 60


def test_cut_down_layouts_train_nothing_and_are_left_like_nothing() -> None:
    rules = LiveRules(GPT)
    assert rules.speed(Grid(1, 11)) == 0
    assert seconds(rules, 12, Grid(1, 12), 1, Grid(1, 11)) == 0
    left_s = seconds(rules, 11, Grid(1, 11), 0, Grid(1, 12))
    assert left_s == seconds(rules, 11, NOTHING, 0, Grid(1, 12))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    layers = tuple(
        LayerProfile(
            name=f"l{n}",
            param_bytes=10**8,
            state_bytes=3 * 10**8,
            activation_bytes=10**6,
            seconds=0.02,
        )
        for n in range(8)
    )
    profile = Profile(
        layers=layers,
        num_micro_batches=16,
        micro_batch_samples=4,
        total_steps=1000,
        bandwidth_bytes_per_s=1e9,
        regroup_seconds=0.08,
    )
    path = tmp_path_factory.mktemp("profile") / "mine.json"
    path.write_bytes(profile.to_json())
    return path


def test_a_recorded_profile_is_replayed_by_its_own_rules(recorded: Path) -> None:
    model = find_model(str(recorded))
    scenario = scenario_of(find_trace("p3-dense-8"))
    options = Options(RuleSet.MEASURED, policies=("ideal", "known", "nochange", "ondemand"))
    bench = Bench(model, options, scenario.capacity)
    possible, known, *others = bench.outcomes(scenario)
    assert model.name == "mine"
    assert 0.5 * possible.samples < known.samples <= possible.samples
    assert {outcome.policy for outcome in others} >= {"nochange", "ondemand"}


def test_a_recorded_profile_knows_no_restarts(recorded: Path) -> None:
    model, scenario = find_model(str(recorded)), scenario_of(find_trace("p3-dense-8"))
    with pytest.raises(InputError, match="give --rules measured"):
        Bench(model, Options(RuleSet.PUBLISHED), 8).outcomes(scenario)
    with pytest.raises(InputError, match="policy varuna needs restart times"):
        Bench(model, Options(RuleSet.MEASURED, policies=("varuna",)), 8).outcomes(scenario)
