"""The tables of docs/notices.md, made from those in the code. Run it to write them anew."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from parcae_operator.signals.event_tables import EVENTS
from parcae_operator.signals.identity import SPOT
from parcae_operator.signals.model import Cloud, Severity
from parcae_operator.signals.rules import Clock, EventRule, Identity, NodeRule
from parcae_operator.signals.tables import NOTICE_S, RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notices.md"
_MEANS = {
    Severity.SUSPECT: "suspect",
    Severity.HINT: "hint",
    Severity.DOOMED: "notice",
    Severity.GONE: "gone",
}


def tables() -> dict[str, str]:
    """By name."""
    return {"identity": _identity(SPOT), "nodes": _nodes(RULES), "events": _events(EVENTS)}


def written(page: str) -> str:
    """The page with its tables as they should be."""
    for name, table in tables().items():
        marks = f"<!-- table: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(f"{marks[0]}.*?{marks[1]}", re.DOTALL)
        assert pattern.search(page), f"the page has no place for the table {name!r}"
        page = pattern.sub(lambda _, m=marks, t=table: f"{m[0]}\n{t}\n{m[1]}", page)
    return page


def _identity(rows: Iterable[Identity]) -> str:
    lines = [
        [row.place, f"`{row.key}`", " or ".join(f"`{v}`" for v in row.values) or "any", row.setter]
        for row in rows
    ]
    return _table(["where", "key", "value", "set by"], lines)


def _nodes(rows: Iterable[NodeRule]) -> str:
    lines = []
    for row in rows:
        shown = f"{row.place} `{row.key}`"
        shown += f" = `{row.value}`" if row.value else ""
        shown += f", text has “{row.has}”" if row.has else ""
        shown += f" (on a {row.needs})" if row.needs else ""
        lines.append(
            [f"`{row.source}`", shown, row.setter, _MEANS[row.severity], _time(row), _end(row)]
        )
    return _table(["name", "the node shows", "set by", "means", "seconds", "until"], lines)


def _events(rows: Iterable[EventRule]) -> str:
    lines = [
        [
            f"`{row.reason}`" + (f" (on a {row.needs})" if row.needs else ""),
            row.setter,
            _MEANS[row.severity],
            "" if row.lead_s is None else f"{row.lead_s:g}",
        ]
        for row in rows
    ]
    return _table(["reason", "from", "means", "seconds"], lines)


def _time(row: NodeRule) -> str:
    if row.clock is Clock.VALUE:
        return "its value"
    if row.severity < Severity.DOOMED:
        return ""
    if row.lead_s is None:
        if row.cloud is Cloud.OTHER:
            return "the cloud's"
        return f"{NOTICE_S[row.cloud]:g}"
    return f"{row.lead_s:g}"


def _end(row: NodeRule) -> str:
    if row.latched:
        return "the node is gone"
    if row.ttl_s is not None:
        return f"it is removed, or {row.ttl_s / 60:g} minutes"
    if row.stale_after_s is not None:
        return f"it is removed; a hint after {row.stale_after_s / 60:g} minutes"
    return "it is removed"


def _table(header: list[str], lines: Iterable[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
