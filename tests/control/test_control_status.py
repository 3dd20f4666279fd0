"""Conditions, the phase, and the times of what flipped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_world import World

from parcae_api.job_status import Condition, ConditionType, InstanceCounts, JobStatus, Phase
from parcae_operator.actions import Complete, Fail, SetStatus
from parcae_operator.controller import decide
from parcae_operator.observation import Crash, Observation, Pod, PodPhase, Trouble
from parcae_operator.status import (
    ended,
    in_trouble,
    is_over,
    make_status,
    phase_of,
    refused,
    timestamp,
    with_transitions,
)
from parcae_optimizer.reactive import ReactivePlanner


def status_of(seen: Observation) -> JobStatus:
    first = decide(seen, ReactivePlanner())[0]
    assert isinstance(first, SetStatus)
    return first.status


def degraded(status: JobStatus) -> tuple[str, str]:
    found = status.condition(ConditionType.DEGRADED)
    assert found is not None
    return (found.reason if found.status == "True" else ""), found.message


# Phases.


def test_a_new_job_is_pending_and_says_what_it_waits_for() -> None:
    status = status_of(World(has_profile=False).pending("a", "b").observe())
    assert status.phase is Phase.PENDING
    ready = status.condition(ConditionType.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "Starting")
    assert ready.message == "no instance is there; 2 pods wait for a node"


def test_pods_that_have_a_node_are_told_apart_from_those_that_wait_for_one() -> None:
    seen = World(has_profile=False).pending("a", "b", "c").observe()
    *waiting, coming = seen.pods
    seen = replace(seen, pods=(*waiting, replace(coming, node="spot-1")))
    ready = status_of(seen).condition(ConditionType.READY)
    assert ready is not None
    assert ready.message == (
        "no instance is there; 2 pods wait for a node; 1 pod starts on its node"
    )


def test_phases_follow_training() -> None:
    world = World(least=1).training(2, 1, "a", "b")
    assert status_of(world.observe()).phase is Phase.TRAINING
    world.lose("b").publish()
    assert status_of(world.observe()).phase is Phase.MIGRATING
    world.obey()
    assert status_of(world.observe()).phase is Phase.TRAINING
    world.least = 2
    world.publish()
    assert status_of(world.observe()).phase is Phase.PAUSED


def test_a_job_is_suspended_once_it_has_stopped() -> None:
    world = World().training(1, 1, "a")
    world.suspend = True
    status = status_of(world.observe())
    assert status.phase is Phase.TRAINING
    suspending = status.condition(ConditionType.SUSPENDED)
    assert suspending is not None
    assert (suspending.status, suspending.reason) == ("False", "Suspending")
    world.publish()
    status = status_of(world.observe())
    assert status.phase is Phase.SUSPENDED
    assert status.configuration == ""


@pytest.mark.parametrize(
    ("held", "phase"),
    [
        ({"Failed", "Completed", "Suspended", "Ready"}, Phase.FAILED),
        ({"Completed", "Suspended", "Ready"}, Phase.COMPLETED),
        ({"Suspended", "Ready"}, Phase.SUSPENDED),
        ({"Ready"}, Phase.TRAINING),
        ({"Degraded"}, Phase.PENDING),
        (set(), Phase.PENDING),
    ],
)
def test_the_worst_word_wins(held: set[str], phase: Phase) -> None:
    conditions = [
        Condition(type=type_, status="True" if type_ in held else "False", reason="X")
        for type_ in ConditionType
    ]
    assert phase_of(conditions) is phase


def test_no_conditions_at_all_are_a_job_that_is_pending() -> None:
    assert phase_of(()) is Phase.PENDING


# Degraded.


def test_troubles_come_first_then_pods_then_crashes() -> None:
    seen = World().ready("a").observe()
    spec = seen.job.spec.model_copy(update={"backoff_limit": 1})
    seen = replace(seen, job=seen.job.model_copy(update={"spec": spec}))
    assert degraded(status_of(seen)) == ("", "")
    crash = Pod("x", PodPhase.GONE, crash=Crash(900.0, "boom"))
    seen = replace(seen, pods=(*seen.pods, crash))
    assert degraded(status_of(seen))[0] == "UserCodeCrashed"
    stuck = Pod("y", PodPhase.PENDING, trouble="ImagePull: no such image")
    seen = replace(seen, pods=(*seen.pods, stuck))
    assert degraded(status_of(seen)) == ("PodsDoNotStart", "y: ImagePull: no such image")
    troubles = (Trouble("BoardUnavailable", "etcd"), Trouble("PlannerUnavailable", "planner"))
    assert degraded(status_of(replace(seen, troubles=troubles))) == ("BoardUnavailable", "etcd")


def test_training_goes_on_while_degraded() -> None:
    seen = replace(
        World().training(1, 1, "a").observe(), troubles=(Trouble("PlannerUnavailable", "away"),)
    )
    status = status_of(seen)
    assert status.phase is Phase.TRAINING
    assert status.holds(ConditionType.DEGRADED)


# Numbers.


def test_instances_are_counted_by_what_they_do() -> None:
    world = World(most=9).training(2, 1, "a", "b", spare=["c", "d"]).notice("b", "d")
    world.starting("e").starting("f", on_board=False).pending("g", "h")
    assert status_of(world.observe()).instance_counts == InstanceCounts(
        training=1, standby=1, starting=2, pending=2, leaving=2
    )


def test_speed_is_that_of_the_epoch_that_trains() -> None:
    world = World().training(1, 1, "a")
    assert world.progress is not None
    world.progress = world.progress.model_copy(update={"samples_per_second": 123.0})
    assert status_of(world.observe()).throughput_samples_per_second == 123.0
    world.ready("b").publish()
    assert status_of(world.observe()).throughput_samples_per_second == 0.0


def test_whatever_happens_the_status_fits_its_contract() -> None:
    world = World().training(1, 1, "a")
    seen = replace(world.observe(), troubles=(Trouble("X", "y" * 5000),))
    status = make_status(seen, waiting="z" * 5000)
    JobStatus.model_validate(status.model_dump())


# The end.


def test_completed() -> None:
    before = status_of(World().training(1, 1, "a").observe())
    status = ended(before, Complete(1000, "all 1000 steps are committed", saved=True))
    assert status.phase is Phase.COMPLETED
    assert is_over(status)
    assert (status.step, status.configuration, status.instances) == (1000, "", 0)
    assert status.revision == before.revision
    over = status.condition(ConditionType.COMPLETED)
    assert over is not None
    assert over.message == "all 1000 steps are committed"


def test_failed() -> None:
    status = ended(status_of(World().training(1, 1, "a").observe()), Fail("boom", "trace"))
    assert status.phase is Phase.FAILED
    assert is_over(status)
    assert status.step == 10
    assert not status.holds(ConditionType.READY)


def test_a_spec_that_cannot_work_keeps_what_was_committed() -> None:
    before = status_of(World().training(1, 1, "a").observe())
    status = refused(before, 7, "spec.template: bad" + "x" * 5000)
    JobStatus.model_validate(status.model_dump())
    assert (status.observed_generation, status.step, status.revision) == (7, 10, 1)
    assert (status.phase, status.configuration) == (Phase.PENDING, "")
    assert degraded(status)[0] == "InvalidSpec"
    assert not is_over(status)


def test_in_trouble_keeps_what_was_last_known() -> None:
    before = status_of(World().training(1, 1, "a").observe())
    status = in_trouble(before, "BoardUnavailable", "etcd does not answer")
    assert degraded(status) == ("BoardUnavailable", "etcd does not answer")
    assert (status.phase, status.step) == (Phase.TRAINING, 10)
    assert in_trouble(status, "BoardUnavailable", "etcd does not answer") == status


def test_in_trouble_from_the_start() -> None:
    status = in_trouble(JobStatus(), "BoardUnavailable", "etcd does not answer")
    ready = status.condition(ConditionType.READY)
    assert ready is not None
    assert (ready.status, ready.message) == ("False", "etcd does not answer")
    assert status.phase is Phase.PENDING


# Transitions.


def test_a_condition_keeps_its_time_until_it_flips() -> None:
    world = World(least=1).training(2, 1, "a", "b")
    first = with_transitions(status_of(world.observe()), JobStatus(), 1, 1000)
    assert {c.last_transition_time for c in first.conditions} == {timestamp(1000)}
    world.lose("b").publish()
    second = with_transitions(status_of(world.observe()), first, 2, 2000)
    times = {c.type: c.last_transition_time for c in second.conditions}
    assert times[ConditionType.READY] == timestamp(2000)
    assert times[ConditionType.PROGRESSING] == timestamp(1000)  # True, for another reason
    assert {c.observed_generation for c in second.conditions} == {2}
    assert second.observed_generation == 2


def test_doing_so_again_changes_nothing() -> None:
    status = status_of(World().training(1, 1, "a").observe())
    once = with_transitions(status, JobStatus(), 1, 1000)
    assert with_transitions(status, once, 1, 2000) == once


def test_a_condition_without_a_time_gets_one() -> None:
    status = status_of(World().training(1, 1, "a").observe())
    assert all(c.last_transition_time for c in with_transitions(status, status, 1, 5).conditions)


def test_times_are_as_kubernetes_writes_them() -> None:
    assert timestamp(0.9) == "1970-01-01T00:00:00Z"
