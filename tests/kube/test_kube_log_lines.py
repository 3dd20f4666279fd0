"""The log, for people and for programs."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from parcae_operator.log_lines import LogFormat, formatter_of


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
