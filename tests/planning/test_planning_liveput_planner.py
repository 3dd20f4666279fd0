"""The liveput planner: what a user and the controller are told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from planning_helpers import make_layout, make_profile
from pydantic import ValidationError

from parcae_api.history import History, IntervalCounts
from parcae_api.job import Pipeline, explain
from parcae_api.planning import MOST_WORKERS, ForecastRequest, PlanAnswer, PlanRequest
from parcae_api.profile import Profile
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.reactive import ReactivePlanner
from parcae_predictor import predictor_of
from parcae_predictor.forecast import Forecast, Question


class Sure:
    """A predictor that knows: the same change in every path of the interval it names."""

    name = "sure"

    def __init__(self, *removed: int) -> None:
        self.removed = removed

    def forecast(self, question: Question) -> Forecast:
        removed = np.zeros((4, question.horizon), dtype=np.int64)
        removed[:, : len(self.removed)] = self.removed
        return Forecast(self.name, question.now, removed, np.zeros_like(removed))


def request(workers: int = 4, **more: object) -> PlanRequest:
    profile = make_profile([0.1] * 4, state_bytes=100_000_000)
    told = {"profile": profile, "num_workers": workers, **more}
    return PlanRequest.model_validate(told)


def plan(asked: PlanRequest, predictor: object = None) -> PlanAnswer:
    return LiveputPlanner(predictor or predictor_of("hazard")).plan(asked)  # type: ignore[arg-type]


def name(answer: PlanAnswer) -> str:
    return str(answer.layout.configuration) if answer.layout else ""


def test_without_losses_it_is_the_fastest() -> None:
    for workers in range(1, 9):
        ours = plan(request(workers), Sure())
        reactive = ReactivePlanner().plan(request(workers))
        assert ours.samples_per_second == pytest.approx(reactive.samples_per_second)


def test_it_says_what_it_expects_and_why() -> None:
    answer = plan(request(5))
    assert answer.layout is not None
    assert answer.forecast is not None
    assert len(answer.forecast.mean) == len(answer.forecast.low) == 12
    assert answer.liveput_samples_per_second is not None
    assert answer.runner_up != name(answer)
    assert answer.alternatives[0].configuration == name(answer)
    assert answer.why.startswith(f"{name(answer)} on 5 workers: ")
    assert f"next best {answer.runner_up} with" in answer.why
    assert "losses and" in answer.why


def test_the_ideal_is_the_fastest_that_these_workers_allow() -> None:
    careful = plan(request(4), Sure(2, 1))
    fastest = ReactivePlanner().plan(request(4)).samples_per_second
    assert careful.ideal_samples_per_second == pytest.approx(fastest)
    measured = plan(request(2, step_seconds={"2x1": 100.0, "1x2": 1.0}), Sure())
    assert measured.ideal_samples_per_second == pytest.approx(32.0)
    unmeasured = make_profile([0.1] * 4)
    layers = tuple(layer.model_copy(update={"seconds": None}) for layer in unmeasured.layers)
    guess = request(2, profile=unmeasured.model_copy(update={"layers": layers}))
    assert plan(guess).ideal_samples_per_second is None  # sizes only rank
    assert ReactivePlanner().plan(guess).ideal_samples_per_second is None


def test_the_median_of_a_forecast() -> None:
    answer = plan(request(4), Sure(1, 1))
    assert answer.forecast is not None
    assert answer.forecast.median[:3] == (3.0, 2.0, 2.0)


def test_the_same_question_gets_the_same_answer() -> None:
    planner = LiveputPlanner(predictor_of("hazard"))
    first = planner.plan(request(6))
    planner.plan(request(3, current=make_layout(1, (0, 2, 4))))
    assert planner.plan(request(6)) == first
    assert plan(request(6)) == first


def test_equal_value_never_moves_state() -> None:
    current = make_layout(4, (0, 4))
    answer = plan(request(4, current=current), Sure())
    assert answer.layout == current
    assert answer.pause_seconds == 0.0


def test_a_slow_layout_does_not_stay_because_it_could_be_left_later() -> None:
    """Over 12 intervals half the speed for one of them is a few per cent."""
    slow = make_layout(1, (0, 2, 4))
    answer = plan(request(8, current=slow), Sure())
    assert answer.samples_per_second > 1.5 * 32 / 1.8
    near = make_layout(2, (0, 2, 4))
    fastest = plan(request(4), Sure())
    table = {"2x2": 0.95 * fastest.samples_per_second, "4x1": fastest.samples_per_second}
    assert plan(request(4, current=near, samples_per_second=table), Sure()).layout == near


def test_a_certain_loss_of_all_spares_is_prepared_for() -> None:
    """A rollback is dear, and one replica would be left with none: depth gives way to width."""
    deep = make_layout(1, (0, 1, 2, 3, 4))
    asked = request(4, current=deep, rollback_seconds=600.0)
    answer = plan(asked, Sure(1, 1))
    assert answer.layout is not None
    assert answer.layout.configuration.data > 1


def test_who_is_left_is_known() -> None:
    current = make_layout(2, (0, 2, 4))
    whole = plan(request(4, current=current, replicas_left=(2, 2)), Sure())
    short = plan(request(3, current=current, replicas_left=(1, 2)), Sure())
    pauses = {a.configuration: a.pause_seconds for a in short.alternatives}
    assert pauses["1x2"] == pytest.approx(0.1)  # regroup only
    # Two lack half of 400 MB, and one has to send it to both.
    assert pauses["3x1"] == pytest.approx(0.1 + 0.4)
    assert {a.configuration: a.pause_seconds for a in whole.alternatives}["2x2"] == 0.0


def test_a_stage_that_nobody_holds_costs_the_rollback() -> None:
    current = make_layout(2, (0, 2, 4))
    asked = request(2, current=current, replicas_left=(0, 2), rollback_seconds=7.0)
    answer = plan(asked, Sure())
    assert answer.pause_seconds is not None
    assert answer.pause_seconds > 7.0


def test_nothing_fits() -> None:
    asked = request(2, pipeline=Pipeline(min_stages=3))
    answer = plan(asked)
    assert answer.layout is None
    assert answer.why == "2 workers are fewer than pipeline.minStages (3)"
    assert answer.forecast is not None


def test_a_table_of_speeds_rules() -> None:
    table = {"1x1": 1.0, "1x2": 5.0, "2x1": 2.0}
    answer = plan(request(2, samples_per_second=table), Sure())
    assert name(answer) == "1x2"
    assert answer.samples_per_second == 5.0
    assert {a.configuration for a in answer.alternatives} <= set(table)


def test_a_table_without_a_layout_for_these_workers_says_so() -> None:
    answer = plan(request(2, samples_per_second={"9x9": 1.0}), Sure())
    assert answer.layout is None
    assert answer.why == (
        "samples_per_second has no layout that 2 workers can run; add one, or leave the table out"
    )
    tight = request(2, samples_per_second={"1x1": 1.0}, worker_memory_bytes=1)
    assert plan(tight).why == "the model's state does not fit on 2 workers"


def test_what_is_kept_is_not_called_the_best() -> None:
    current = make_layout(2, (0, 2, 4))
    asked = request(4, current=current, samples_per_second={"2x2": 98.0, "4x1": 100.0})
    answer = plan(asked, Sure())
    assert answer.layout == current
    assert answer.runner_up == "4x1"
    assert answer.why.endswith("kept as 4x1 with 100 is not ahead by enough to move")
    assert "next best" not in answer.why


def test_nobody_expects_less_than_nothing() -> None:
    """A pause that outlasts the horizon: 400 TB over 1 GB/s."""
    heavy = make_profile([10.0] * 4, state_bytes=10**14)
    answer = plan(request(2, profile=heavy), Sure())
    assert answer.liveput_samples_per_second == 0.0
    assert all(a.liveput_samples_per_second == 0.0 for a in answer.alternatives)
    assert ": 0.18 samples/s, 0 expected" in answer.why
    assert "next best 1x1 with 0" in answer.why


def test_measured_steps_rule() -> None:
    slow = plan(request(2, step_seconds={"2x1": 100.0, "1x2": 1.0}), Sure())
    assert name(slow) == "1x2"
    assert slow.samples_per_second == pytest.approx(32.0)


def test_an_unknown_current_layout_is_no_obstacle() -> None:
    """Of a job whose minimum depth has just been raised, or that ran on more workers."""
    current = make_layout(8, (0, 4))
    assert plan(request(4, current=current, replicas_left=(4,))).layout is not None
    deep = request(4, current=make_layout(4, (0, 4)), pipeline=Pipeline(min_stages=2))
    assert plan(deep).layout is not None


@pytest.mark.parametrize("workers", [0, 1, 2, 7, 64])
@pytest.mark.parametrize("model", ["hazard", "window", "persistence"])
def test_any_count_has_an_answer(workers: int, model: str) -> None:
    answer = plan(request(workers), predictor_of(model))
    assert (answer.layout is None) == (workers == 0)


def test_histories_of_losses_make_it_careful() -> None:
    """The same workers, one history calm and one in which half vanish every other minute."""

    def history(storm: bool) -> History:
        rows, available = [], 0
        for i in range(120):
            wanted = 8 if not storm or i % 2 == 0 else 4
            added, removed = max(0, wanted - available), max(0, available - wanted)
            available = wanted
            rows.append(
                IntervalCounts(
                    start_unix_s=60.0 * i, available=wanted, added=added, removed=removed
                )
            )
        return History(interval_s=60.0, intervals=tuple(rows))

    calm, storm = (plan(request(8, capacity=8, history=history(s))) for s in (False, True))
    assert calm.forecast is not None
    assert storm.forecast is not None
    assert storm.forecast.removed > 10 * calm.forecast.removed
    assert storm.liveput_samples_per_second is not None
    assert calm.liveput_samples_per_second is not None
    assert storm.liveput_samples_per_second < 0.9 * calm.liveput_samples_per_second


# Contracts.


def wrong(**change: object) -> str:
    told = json.loads(request(4).to_json()) | change
    with pytest.raises(ValidationError) as caught:
        PlanRequest.from_json(json.dumps(told))
    return explain(caught.value)


def test_bad_requests_name_field_value_and_remedy() -> None:
    assert "num_workers" in wrong(num_workers=-1)
    assert f"{MOST_WORKERS}" in wrong(num_workers=MOST_WORKERS + 1)
    assert "horizon" in wrong(horizon=0)
    assert "capacity (3) is below num_workers (4); give at least as many" in wrong(capacity=3)
    assert "replicas_left is given without current" in wrong(replicas_left=[1])
    current = json.loads(make_layout(2, (0, 2, 4)).to_json())
    assert "has 1 stages, but current has 2" in wrong(current=current, replicas_left=[1])
    assert "says 3, but current has 2 replicas" in wrong(current=current, replicas_left=[3, 1])
    assert "counts 5 workers that stay, but num_workers is 4" in wrong(
        current=json.loads(make_layout(3, (0, 2, 4)).to_json()), replicas_left=[3, 2]
    )
    assert "current has 4 workers, but num_workers is 3; give replicas_left" in wrong(
        num_workers=3, current=current
    )
    other = json.loads(make_layout(2, (0, 2, 9)).to_json())
    assert "end at layer 9, but profile.layers has 4" in wrong(current=other)
    flat = {**current, "boundaries": [0, 2, 2]}
    assert "boundaries are [0, 2, 2]; let them rise" in wrong(current=flat)
    assert "for 2 stages give 3 rising" in wrong(current={**current, "boundaries": [0, 4]})
    assert "boundaries.1" in wrong(current={**current, "boundaries": [0, 10**400, 10**401]})
    assert "micro_batches are [8]; for 2 replicas" in wrong(
        current={**current, "micro_batches": [8]}
    )
    crowd = {"start_unix_s": 0, "available": 100_000, "added": 0, "removed": 0}
    assert "history.intervals.0.available" in wrong(
        history={"interval_s": 60, "intervals": [crowd]}
    )
    assert "step_seconds" in wrong(step_seconds={"2x": 1.0})
    assert "step_seconds.2x1" in wrong(step_seconds={"2x1": 0})


def test_profiles_hold_no_nonsense() -> None:
    told = json.loads(make_profile([0.1]).to_json())
    for field, value in [("seconds", "NaN"), ("state_bytes", -1), ("param_bytes", -5)]:
        bad = {**told, "layers": [{**told["layers"][0], field: value}]}
        with pytest.raises(ValidationError) as caught:
            Profile.from_json(json.dumps(bad))
        assert explain(caught.value).startswith(f"layers.0.{field}: ")


def test_a_forecast_request_is_checked_alike() -> None:
    with pytest.raises(ValidationError, match="is below num_workers"):
        ForecastRequest(num_workers=4, capacity=2)
