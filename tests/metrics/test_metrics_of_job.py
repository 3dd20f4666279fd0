"""What is told of a job: the status' own numbers, and no counter that could go back."""

from __future__ import annotations

import time

import pytest
from metric_facts import answer, condition, facts, status, told

from parcae_api.job import Instances
from parcae_api.job_status import ConditionType, JobStatus, Phase
from parcae_api.planning import ForecastSummary
from parcae_operator.metrics.of_job import forecast_points


def test_speeds() -> None:
    tell = told(facts())
    assert tell("liveput_samples_per_second", namespace="team", job="gpt") == 80.25
    assert tell("throughput_samples_per_second") == 90.5
    assert tell("ideal_samples_per_second") == 100.0


def test_instances_by_what_they_do_and_as_asked_for() -> None:
    tell = told(facts())
    assert tell.all("instances", "state") == {
        ("training",): 6,
        ("standby",): 1,
        ("starting",): 2,
        ("pending",): 3,
        ("leaving",): 4,
    }
    assert (tell("instances_min"), tell("instances_max")) == (2, 16)


def test_a_forecast_is_four_points_of_three_quantiles() -> None:
    found = told(facts()).all("forecast_instances", "horizon_seconds", "quantile")
    assert found == {
        ("60", "0.1"): 0,
        ("180", "0.1"): 2,
        ("360", "0.1"): 5,
        ("720", "0.1"): 11,
        ("60", "0.5"): 100,
        ("180", "0.5"): 102,
        ("360", "0.5"): 105,
        ("720", "0.5"): 111,
        ("60", "0.9"): 200,
        ("180", "0.9"): 202,
        ("360", "0.9"): 205,
        ("720", "0.9"): 211,
    }


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 12, 60])
def test_forecasts_of_any_length_stay_small_and_reach_the_horizon(length: int) -> None:
    values = tuple(float(k + 1) for k in range(length))
    forecast = ForecastSummary(
        model="m", interval_s=30, mean=values, low=values, high=values, removed=0, added=0
    )
    found = dict(forecast_points(forecast))
    assert len(found) == len(list(forecast_points(forecast)))
    assert len(found) <= 2 * 4  # an older planner gives no median
    for (seconds, _), value in found.items():
        assert float(seconds) == 30 * value
    if length:
        assert found[f"{30 * length}", "0.9"] == length


def test_short_horizons_have_points_of_their_own() -> None:
    values = (1.0, 2.0, 3.0, 4.0, 5.0)
    forecast = ForecastSummary(
        model="m", interval_s=30, mean=values, low=values, high=values, removed=0, added=0
    )
    assert {seconds for (seconds, _), _ in forecast_points(forecast)} == {"30", "60", "90", "150"}


def test_an_answer_without_a_forecast_tells_none() -> None:
    assert told(facts(answer=answer(forecast=None))).all("forecast_instances") == {}
    assert told(facts(answer=None)).all("forecast_instances") == {}


@pytest.mark.parametrize(
    ("configuration", "expected"), [("2x3", (2, 3)), ("16x1", (16, 1)), ("", (0, 0))]
)
def test_the_configuration_by_its_axes(configuration: str, expected: tuple[int, int]) -> None:
    tell = told(facts(now=status(configuration=configuration)))
    assert (tell("configuration", axis="data"), tell("configuration", axis="pipeline")) == expected
    assert tell("plan_revision") == 7


def test_counters_are_of_what_the_api_server_has() -> None:
    ahead = status(step=5000, steps_committed=5000, preemptions=50, steps_replayed=50, revision=8)
    tell = told(facts(now=ahead))
    assert tell("plan_revision") == 8
    assert tell("steps_committed_total") == 1240  # a successor would begin there
    assert tell("samples_committed_total") == 9920
    assert tell("steps_replayed_total") == 6
    assert tell("preemptions_total", noticed="true") == 3
    assert tell("preemptions_total", noticed="false") == 2


def test_migrations_by_kind_with_what_they_cost() -> None:
    tell = told(facts())
    assert tell.all("migrations_total", "kind") == {
        ("intra_stage",): 0,
        ("inter_stage",): 1,
        ("pipeline",): 3,
    }
    assert tell.all("migration_bytes_total", "kind") == {
        ("intra_stage",): 0,
        ("inter_stage",): 10,
        ("pipeline",): 900,
    }
    assert tell("migration_pause_seconds_sum", kind="pipeline") == 2.5
    assert tell("migration_pause_seconds_count", kind="pipeline") == 3


def test_a_status_of_an_earlier_version_has_its_steps() -> None:
    tell = told(facts(written=JobStatus(step=10, samples=80)))
    assert tell("steps_committed_total") == 10
    assert tell("samples_committed_total") == 80


def test_conditions_and_phase() -> None:
    tell = told(facts())
    held = {key for key, value in tell.all("job_condition", "type").items() if value}
    assert held == {("Ready",)}
    assert len(tell.all("job_condition", "type")) == len(ConditionType)
    phases = tell.all("job_phase", "phase")
    assert {key for key, value in phases.items() if value} == {("Training",)}
    assert len(phases) == len(Phase)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"answer": None}, None),
        ({"answer": answer(ideal_samples_per_second=None)}, None),
        ({"answer": answer(layout=None)}, 0),
        ({"instances": Instances(min=8, max=16)}, 0),
        ({"instances": None}, 100),
        ({"now": status(conditions=(condition(ConditionType.SUSPENDED, True),))}, 0),
        ({"now": status(conditions=(condition(ConditionType.COMPLETED, True),))}, 0),
    ],
)
def test_the_ideal_is_of_what_could_train_now(
    changes: dict[str, object], expected: float | None
) -> None:
    assert told(facts(**changes))("ideal_samples_per_second") == expected


def test_what_is_not_known_is_not_told() -> None:
    tell = told(facts(instances=None, checkpoint_unix_s=None))
    assert tell("instances_min") is tell("instances_max") is None
    assert tell("checkpoint_age_seconds") is None


def test_the_age_of_the_newest_checkpoint() -> None:
    def age(**changes: object) -> float | None:
        return told(facts(**changes))("checkpoint_age_seconds")

    assert age() == pytest.approx(1000, abs=60)
    assert age(checkpoint_unix_s=time.time() + 1000) == 0  # a clock elsewhere is ahead
    assert age(now=status(configuration="")) is None  # its state is saved, and grows no older
