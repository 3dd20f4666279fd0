"""Lines of several programs' logs as one story, in order. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any

EVENT, OPERATOR, PLANNER = "event", "operator", "planner"
"""Who writes; an agent goes by its pod."""
_PROGRAMS = {"parcae_operator": OPERATOR, "parcae_optimizer": PLANNER, "parcae_cli": "command"}
_OURS = re.compile(r"parcae_\w+(\.\w+)*")
_TEXT = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?:(?P<who>[^\s:]+) )?"
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<logger>parcae_[\w.]+): (?P<message>.*)"
)
_ABOUT = re.compile(r" \[(?P<fields>\w+=\S+(?: \w+=\S+)*)\]$")
_REVISION = re.compile(r"revision (?P<revision>\d+)\b")
_CAUSE_S = 10.0
"""What is about no revision belongs to one that is published within so many seconds after it."""
_FORMING_S = 60.0
"""And, while that forms, for so long at most."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a log, or an Event."""

    at_unix_s: float
    who: str
    level: str
    message: str
    revision: int | None = None
    namespace: str = ""
    job: str = ""
    repeats: int = 0
    """Like lines before it that are left out."""

    @property
    def is_bad(self) -> bool:
        """Whether it tells of trouble."""
        return self.level in ("warning", "error", "critical")

    def as_json(self) -> dict[str, object]:
        """For programs."""
        at = datetime.fromtimestamp(self.at_unix_s).astimezone()
        told = {
            "time": at.isoformat(timespec="milliseconds"),
            "who": self.who,
            "level": self.level,
            "message": self.message,
            "revision": self.revision,
        }
        return {name: value for name, value in told.items() if value is not None}


def read_line(text: str, who: str = "") -> Line | None:
    """One line of a program's log, JSON or text; None where it is not of Parcae.

    Args:
        text: As it was written.
        who: Whose log it is; empty where several write to it.
    """
    if text.startswith("{"):
        return _from_json(text, who)
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    about = _ABOUT.search(found["message"])
    fields = dict(each.split("=", 1) for each in about["fields"].split()) if about else {}
    message = found["message"][: about.start()] if about else found["message"]
    at = datetime.strptime(found["time"], "%Y-%m-%d %H:%M:%S,%f")  # this machine's clock
    name = who or found["who"] or ""
    return _line(at.timestamp(), name, found["logger"], found["level"], message, fields)


def _from_json(text: str, who: str) -> Line | None:
    try:
        told = json.loads(text)
    except ValueError:
        return None
    if not isinstance(told, dict) or not _OURS.fullmatch(str(told.get("logger", ""))):
        return None
    try:
        at_unix_s = datetime.fromisoformat(str(told.get("time"))).timestamp()
    except ValueError:
        return None
    name = who or str(told.get("pod", ""))
    level, message = str(told.get("level", "info")), str(told.get("message", ""))
    if error := str(told.get("error") or "").strip():
        message = f"{message}: {error.splitlines()[-1]}"
    return _line(at_unix_s, name, str(told["logger"]), level, message, told)


def _line(
    at_unix_s: float, who: str, logger: str, level: str, message: str, fields: Mapping[str, Any]
) -> Line:
    program = _PROGRAMS.get(logger.partition(".")[0])
    revision = str(fields.get("revision", ""))
    return Line(
        at_unix_s=at_unix_s,
        who=who or program or logger,
        level=level.lower(),
        message=printable(message),
        revision=int(revision) if re.fullmatch(r"\d{1,15}", revision, re.ASCII) else None,
        namespace=str(fields.get("namespace", "")),
        job=str(fields.get("job", "")),
    )


def revision_in(note: str) -> int | None:
    """The revision that an Event is about: those that have one begin with it."""
    found = _REVISION.match(note)
    return int(found["revision"][:15]) if found else None


def printable(text: str) -> str:
    """On one line, and without what a terminal would take for orders: logs come from anywhere."""
    return "".join(c if c.isprintable() else " " for c in text)


def story(lines: Iterable[Line], revision: int | None) -> list[Line]:
    """What is told of one revision, in order; of all where none is given.

    What led to it does not know its number yet. So what is about no revision, and what went wrong
    with an earlier one, is part of the story when it happened shortly before the plan was
    published, or while that formed. Questions to the
    planner that were asked over and over while nothing changed are told once.
    """
    ordered = sorted(lines, key=lambda line: line.at_unix_s)
    if revision is None:
        return ordered
    own = [line for line in ordered if line.revision == revision]
    told = [line for line in own if line.who != PLANNER]
    if not told:
        return list(_without_repeats(own))
    begun_s = told[0].at_unix_s
    forming = [line for line in told if line.at_unix_s <= begun_s + _FORMING_S]
    # An Event tells when it has formed; agents that come later hear of the plan, too.
    ends = [line for line in forming if line.who == EVENT] or forming
    formed_s = ends[-1].at_unix_s
    causes = [
        line
        for line in ordered
        if (line.revision is None or (line.is_bad and line.revision < revision))
        and begun_s - _CAUSE_S <= line.at_unix_s <= formed_s
    ]
    found = sorted([*own, *causes], key=lambda line: line.at_unix_s)
    return list(_without_repeats(found))


def _without_repeats(lines: Sequence[Line]) -> Iterator[Line]:
    """Of what the planner said in a row, the last, and how much went before."""
    repeats = 0
    for line, after in zip_longest(lines, lines[1:]):
        if line.who == PLANNER and after is not None and after.who == PLANNER:
            repeats += 1
            continue
        yield replace(line, repeats=repeats) if line.who == PLANNER else line
        repeats = 0
