"""One story out of the lines of several programs."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parcae_cli.log_story import EVENT, OPERATOR, PLANNER, Line, read_line, revision_in, story

NOW = 1_900_000_000.0


def line(at_s: float, who: str, message: str = "", **more: Any) -> Line:
    return Line(
        **{"at_unix_s": NOW + at_s, "who": who, "level": "info", "message": message, **more}
    )


def told(lines: list[Line], revision: int | None) -> list[str]:
    return [each.message for each in story(lines, revision)]


# Lines.


def as_json(**fields: Any) -> str:
    return json.dumps(
        {
            "time": "2030-03-17T17:46:40.123+00:00",
            "level": "warning",
            "logger": "parcae_agent.worker",
            "message": "formed",
            **fields,
        }
    )


def test_a_line_of_json() -> None:
    found = read_line(as_json(revision=8, job="gpt", namespace="team", pod="gpt-1"))
    assert found == Line(
        at_unix_s=NOW + 0.123,
        who="gpt-1",
        level="warning",
        message="formed",
        revision=8,
        namespace="team",
        job="gpt",
    )
    assert found.is_bad


def test_the_log_that_it_is_from_says_who() -> None:
    found = read_line(as_json(pod="made up"), "gpt-1")
    assert found is not None
    assert found.who == "gpt-1"


@pytest.mark.parametrize(
    ("logger", "who"),
    [
        ("parcae_operator.loop", OPERATOR),
        ("parcae_optimizer.logged", PLANNER),
        ("parcae_cli.etcd_server", "command"),
        ("parcae_api.etcd", "parcae_api.etcd"),
    ],
)
def test_where_several_write_the_logger_says_who(logger: str, who: str) -> None:
    found = read_line(as_json(logger=logger))
    assert found is not None
    assert found.who == who


def test_an_error_ends_a_line_in_its_last_words() -> None:
    found = read_line(as_json(error="Traceback (most recent call last):\n  x\nValueError: odd"))
    assert found is not None
    assert found.message == "formed: ValueError: odd"


def test_a_line_of_text() -> None:
    text = "2030-03-17 17:46:40,123 agent-1 INFO parcae_agent.worker: formed [odd] [revision=8]"
    found = read_line(text)
    assert found is not None
    at = datetime(2030, 3, 17, 17, 46, 40, 123_000)  # by this machine's clock, as it is written
    assert found == Line(
        at_unix_s=at.timestamp(), who="agent-1", level="info", message="formed [odd]", revision=8
    )


def test_text_about_a_job() -> None:
    text = (
        "2030-03-17 17:46:40,123 WARNING parcae_operator.loop: a: b "
        "[namespace=team job=gpt revision=8]"
    )
    found = read_line(text, OPERATOR)
    assert found is not None
    assert (found.namespace, found.job, found.revision) == ("team", "gpt", 8)
    assert (found.who, found.message) == (OPERATOR, "a: b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "step 5 loss 2.5",
        "{",
        "[1]",
        "{}",
        '{"logger": "torch.distributed", "message": "x", "time": "2030-03-17T17:46:40+00:00"}',
        as_json(time="yesterday"),
        as_json(time=None),
        as_json(logger=None),
        "2030-03-17 17:46:40,123 INFO torch.distributed: hello",
        "Traceback (most recent call last):",
    ],
)
def test_what_is_not_parcaes_is_none(text: str) -> None:
    assert read_line(text) is None


@pytest.mark.parametrize("revision", ["x", "-1", None, [], "1" * 30, 8.5, True])
def test_a_revision_without_sense_is_none(revision: object) -> None:
    found = read_line(as_json(revision=revision))
    assert found is not None
    assert found.revision is None


def test_a_terminal_gets_no_orders() -> None:
    found = read_line(as_json(message="a\x1b[2Jb\nc\r"))
    assert found is not None
    assert found.message == "a [2Jb c "


@given(st.text())
def test_whatever_stands_in_a_log_is_a_line_or_none(text: str) -> None:
    found = read_line(text)
    assert found is None or found.message.isprintable()


@pytest.mark.parametrize(
    ("note", "revision"),
    [
        ("revision 8 2x2 (notice): why", 8),
        ("revision 12 formed at step 5: pipeline", 12),
        ("it goes back to revision 7", None),
        ("revision: none", None),
        ("", None),
    ],
)
def test_an_event_begins_with_its_revision(note: str, revision: int | None) -> None:
    assert revision_in(note) == revision


# Stories.


def test_a_change_of_plan_in_order() -> None:
    lines = [
        line(0.30, "gpt-b", "formed", revision=8),
        line(0.10, OPERATOR, "plan published", revision=8),
        line(0.05, PLANNER, "2x2", revision=8),
        line(0.00, "gpt-a", "notice"),
        line(0.31, EVENT, "Migrated", revision=8),
        line(-900.0, "gpt-b", "formed", revision=7),
        line(0.02, EVENT, "InstanceNoticed"),
        line(500.0, "gpt-b", "leaves revision 8", revision=9),
    ]
    assert told(lines, 8) == [
        "notice",
        "InstanceNoticed",
        "2x2",
        "plan published",
        "formed",
        "Migrated",
    ]
    assert len(told(lines, None)) == len(lines)
    assert told(lines, 3) == []


def test_what_happened_long_before_or_later_is_another_story() -> None:
    lines = [
        line(-11.0, EVENT, "too early"),
        line(-9.0, EVENT, "cause"),
        line(0.0, OPERATOR, "published", revision=8),
        line(5.0, EVENT, "while it forms"),
        line(6.0, "gpt-a", "formed", revision=8),
        line(7.0, EVENT, "too late"),
        line(3600.0, "gpt-a", "broke", revision=8),
        line(3500.0, EVENT, "much too late"),
    ]
    assert told(lines, 8) == ["cause", "published", "while it forms", "formed", "broke"]


def test_who_joins_later_and_hears_of_the_plan_does_not_make_its_story_longer() -> None:
    lines = [
        line(0.0, OPERATOR, "published", revision=8),
        line(1.0, EVENT, "Migrated", revision=8),
        line(6.0, EVENT, "InstanceJoined"),
        line(7.0, "gpt-c", "outside the grid", revision=8),
    ]
    assert told(lines, 8) == ["published", "Migrated", "outside the grid"]


def test_what_went_wrong_with_the_one_before_is_a_cause() -> None:
    lines = [
        line(-4.0, "gpt-a", "the epoch broke", revision=7, level="warning"),
        line(-3.0, "gpt-a", "calm", revision=7),
        line(0.0, OPERATOR, "published", revision=8),
    ]
    assert told(lines, 8) == ["the epoch broke", "published"]
    assert told(lines, 7) == ["the epoch broke", "calm"]


def test_questions_without_an_answer_are_told_once() -> None:
    asked = [line(-60.0 * k, PLANNER, f"asked {k}", revision=8) for k in range(5)]
    lines = [*asked, line(1.0, OPERATOR, "published", revision=8)]
    found = story(lines, 8)
    assert [each.message for each in found] == ["asked 0", "published"]
    assert found[0].repeats == 4
    assert [each.message for each in story(asked, 8)] == ["asked 0"]  # nothing came of them yet


def test_for_programs_it_is_an_object() -> None:
    at = datetime.fromtimestamp(NOW).astimezone().isoformat(timespec="milliseconds")
    assert line(0.0, EVENT, "Planned", revision=8).as_json() == {
        "time": at,
        "who": EVENT,
        "level": "info",
        "message": "Planned",
        "revision": 8,
    }
    assert "revision" not in line(0.0, EVENT).as_json()
