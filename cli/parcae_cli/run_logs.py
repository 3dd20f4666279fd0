"""Reads what the programs of a local run have said, from the folder of its records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from parcae_api.errors import InputError
from parcae_api.events import parse_event
from parcae_cli.local.describe import describe
from parcae_cli.log_story import EVENT, Line, printable, read_line

_LOGS = ("parcae.log", "agents.log")
_EVENTS = "events.jsonl"


def read_run(folder: Path) -> list[Line]:
    """All of it, in no order.

    Raises:
        InputError: it is no folder of a run.
    """
    logs = [folder / name for name in _LOGS if (folder / name).is_file()]
    if not logs:
        raise InputError(f"--run: {folder} has no {' or '.join(_LOGS)}; name a run's folder")
    try:
        read = (read_line(text) for path in logs for text in _texts(path))
        return [*(line for line in read if line is not None), *_events(folder / _EVENTS)]
    except OSError as error:
        raise InputError(f"--run: {folder} cannot be read: {error.strerror}") from error


def _events(path: Path) -> Iterator[Line]:
    for text in _texts(path) if path.is_file() else []:
        try:
            told = json.loads(text)
            at_unix_s = datetime.fromisoformat(told["time"]).timestamp()
            raw = {k: v for k, v in told.items() if k not in ("at_s", "time")}
            event = parse_event(json.dumps({**raw, "at_unix_s": at_unix_s}))
        except (ValueError, KeyError, TypeError, ValidationError):
            continue  # of another version, or cut short as its writer was killed
        yield Line(
            at_unix_s=at_unix_s,
            who=EVENT,
            level="info",
            message=printable(describe(event)),
            revision=getattr(event, "revision", None),
        )


def _texts(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()
