"""The log, for people and for programs."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from parcae_api.errors import InputError
from parcae_api.log_context import about
from parcae_api.log_lines import LogFormat, formatter_of, log_format_of


def record(message: str, *args: object, **more: Any) -> logging.LogRecord:
    made = logging.LogRecord(
        "parcae_operator.loop", logging.WARNING, "x.py", 1, message, args, None
    )
    made.created = 1_900_000_000.1234
    for name, value in more.items():
        setattr(made, name, value)
    return made


def as_json(made: logging.LogRecord) -> dict[str, Any]:
    line = formatter_of(LogFormat.JSON).format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_of_json() -> None:
    assert as_json(record("%s: a\nb", "team/gpt")) == {
        "time": "2030-03-17T17:46:40.123+00:00",
        "level": "warning",
        "logger": "parcae_operator.loop",
        "message": "team/gpt: a\nb",
        "thread": "MainThread",
    }


def test_a_traceback_is_in_the_line() -> None:
    try:
        raise ValueError("odd")
    except ValueError:
        found = as_json(record("failed", exc_info=sys.exc_info()))
    assert found["error"].startswith("Traceback")
    assert found["error"].endswith("ValueError: odd")


def test_what_was_given_besides_is_in_the_line_and_hides_nothing() -> None:
    found = as_json(record("planned", revision=7, job="team/gpt", level="mine", odd=object))
    assert (found["revision"], found["job"]) == (7, "team/gpt")
    assert found["level"] == "warning"
    assert found["odd"] == "<class 'object'>"


def test_text_is_for_people() -> None:
    line = formatter_of(LogFormat.TEXT).format(record("hello %d", 1))
    assert line.endswith("WARNING parcae_operator.loop: hello 1")


def test_what_a_line_is_about_is_in_it() -> None:
    with about(namespace="team", job="gpt"), about(revision=8):
        found = as_json(record("formed"))
        text = formatter_of(LogFormat.TEXT).format(record("formed"))
    assert (found["namespace"], found["job"], found["revision"]) == ("team", "gpt", 8)
    assert text.endswith(": formed [namespace=team job=gpt revision=8]")


def test_a_traceback_stands_below_what_a_line_is_about() -> None:
    try:
        raise ValueError("odd")
    except ValueError:
        made = record("failed", exc_info=sys.exc_info())
    with about(revision=8):
        first, *_, last = formatter_of(LogFormat.TEXT).format(made).splitlines()
    assert first.endswith(": failed [revision=8]")
    assert last == "ValueError: odd"


def test_who_writes_to_a_shared_file_is_named() -> None:
    line = formatter_of(LogFormat.TEXT, "pod-1").format(record("hello"))
    assert line.split(maxsplit=2)[2] == "pod-1 WARNING parcae_operator.loop: hello"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({}, "text"), ({"PARCAE_LOG_FORMAT": ""}, "text"), ({"PARCAE_LOG_FORMAT": "json"}, "json")],
)
def test_the_format_is_the_environments(environ: dict[str, str], expected: str) -> None:
    assert log_format_of(environ) == expected


def test_another_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"^PARCAE_LOG_FORMAT: is 'xml'; give text or json$"):
        log_format_of({"PARCAE_LOG_FORMAT": "xml"})
