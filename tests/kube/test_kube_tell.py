"""What people hear of a job, as Kubernetes Events on it."""

from __future__ import annotations

import re

import pytest
from kube_objects import make_job

from parcae_api import events
from parcae_api.events import AnyEvent, MigrationKind
from parcae_api.job_status import Condition, ConditionType
from parcae_api.plan import PlanReason
from parcae_operator.kube.tell import tell, tell_condition

PLANNED = events.Planned(
    at_unix_s=1.0,
    revision=3,
    reason=PlanReason.LOSS,
    why="one is gone",
    configuration="2x2",
    instances=4,
)
MIGRATED = events.Migration(
    at_unix_s=1.0,
    revision=3,
    kind=MigrationKind.PIPELINE,
    reason=PlanReason.LOSS,
    resumed_step=7,
    bytes_moved=1000,
    pause_seconds=0.1234,
    transfer_seconds=0.1,
    steps_replayed=0,
    sudden=True,
)


@pytest.mark.parametrize(
    ("event", "type_", "reason", "note"),
    [
        (PLANNED, "Normal", "Planned", "revision 3 2x2 (loss): one is gone"),
        (
            PLANNED.model_copy(update={"configuration": "paused"}),
            "Normal",
            "Planned",
            "revision 3 (loss): one is gone",
        ),
        (
            MIGRATED,
            "Normal",
            "Migrated",
            "revision 3 formed at step 7: pipeline, 1000 bytes moved, paused 0.12 s",
        ),
        (
            events.NoticeGiven(
                at_unix_s=1, incarnation="p-1", node="n", deadline_unix_s=9, source="aws"
            ),
            "Normal",
            "InstanceNoticed",
            "the instance of p-1 on n goes away: aws",
        ),
        (
            events.InstanceLost(at_unix_s=1, incarnation="p", node="n", noticed=True),
            "Normal",
            "InstanceLost",
            "the instance of p on n is lost after a notice",
        ),
        (
            events.InstanceLost(at_unix_s=1, incarnation="p", node="n", noticed=False),
            "Warning",
            "InstanceLost",
            "the instance of p on n is lost without notice",
        ),
        (
            events.InstanceJoined(at_unix_s=1, incarnation="p", node="n"),
            "Normal",
            "InstanceJoined",
            "p on n is ready to train",
        ),
        (
            events.RolledBack(at_unix_s=1, revision=2, from_step=9, to_step=5, layers=("a",)),
            "Warning",
            "RolledBack",
            "revision 2: a layer had no holder left: back from step 9 to 5",
        ),
        (
            events.Failed(at_unix_s=1, worker="p/0", step=1, message="ValueError: boom"),
            "Warning",
            "UserCodeFailed",
            "ValueError: boom",
        ),
    ],
)
def test_events_are_told_in_one_sentence(
    event: AnyEvent, type_: str, reason: str, note: str
) -> None:
    told = tell(make_job(), event, "operator-0")
    assert told is not None
    assert (told["type"], told["reason"], told["action"]) == (type_, reason, reason)
    assert told["note"] == note


def test_what_people_need_not_hear_is_not_told() -> None:
    assert tell(make_job(), events.Condition(at_unix_s=1, reason="X", message="y"), "o") is None


def test_the_event_is_one_that_the_api_server_takes() -> None:
    told = tell(make_job(), PLANNED, "operator" * 50)
    again = tell(make_job(), PLANNED, "operator")
    assert told is not None
    assert again is not None
    assert told["metadata"]["name"] != again["metadata"]["name"]
    assert told["metadata"]["namespace"] == "team"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", told["eventTime"])
    assert len(told["reportingInstance"]) <= 128
    assert told["regarding"] == {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "name": "gpt",
        "namespace": "team",
        "uid": "uid-of-gpt",
    }


@pytest.mark.parametrize("letter", ["x", "×", "🙂"])
def test_a_note_is_cut_to_the_bytes_that_fit(letter: str) -> None:
    told = tell(make_job(), PLANNED.model_copy(update={"why": letter * 3000}), "o")
    assert told is not None
    assert 1000 < len(told["note"].encode()) <= 1024


@pytest.mark.parametrize(
    ("type_", "status", "expected"),
    [
        (ConditionType.DEGRADED, "True", "Warning"),
        (ConditionType.FAILED, "True", "Warning"),
        (ConditionType.DEGRADED, "False", "Normal"),
        (ConditionType.COMPLETED, "True", "Normal"),
    ],
)
def test_conditions_that_flip(type_: ConditionType, status: str, expected: str) -> None:
    condition = Condition.model_validate({"type": type_, "status": status, "reason": "Why"})
    told = tell_condition(make_job(), condition, "o")
    assert (told["type"], told["reason"], told["note"]) == (expected, "Why", "Why")
    condition = condition.model_copy(update={"message": "in words"})
    assert tell_condition(make_job(), condition, "o")["note"] == "in words"
