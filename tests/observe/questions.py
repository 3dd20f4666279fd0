"""All that dashboards and alerts ask, with what their readers have chosen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from . import chosen

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "charts" / "parcae"
DASHBOARDS = ("parcae-job", "parcae-fleet")
ALERTS = "alerts"

Object = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """One query.

    Args:
        page: the dashboard, or ``alerts``.
        title: of the panel, or the alert's name.
        name: what tells it from others of its panel: its legend, or its column.
        expr: the query, with all variables filled in.
        panel: the panel's JSON; empty for alerts and annotations.
    """

    page: str
    title: str
    name: str
    expr: str
    panel: Object = field(default_factory=dict, compare=False, hash=False)


def panels(page: str) -> list[Object]:
    """Of a dashboard, with its rows' headings."""
    found: list[Object] = dashboard(page)["panels"]
    return found


def dashboard(page: str) -> Object:
    """Its JSON."""
    found: Object = json.loads((CHART / "dashboards" / f"{page}.json").read_text())
    return found


def every() -> Iterator[Question]:
    """All of them."""
    for page in DASHBOARDS:
        fleet = page == "parcae-fleet"
        for panel in panels(page):
            for target in panel.get("targets", ()):
                expr = chosen.filled(target["expr"], fleet=fleet)
                yield Question(page, panel["title"], _name(panel, target), expr, panel)
        for each in dashboard(page)["annotations"]["list"]:
            if "target" in each:
                expr = chosen.filled(each["target"]["expr"], fleet=fleet)
                yield Question(page, each["name"], "", expr)
    rules = yaml.safe_load((CHART / "rules" / "parcae.yaml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield Question(ALERTS, rule["alert"], "", " ".join(rule["expr"].split()))


def _name(panel: Object, target: Object) -> str:
    """The legend, or the column of a table."""
    if panel["type"] != "table" or target["legendFormat"]:
        return str(target["legendFormat"])
    value = f"Value #{target['refId']}"
    for each in panel["transformations"]:
        options = each["options"]
        if each["id"] == "organize":
            return (
                "phase" if options["excludeByName"].get(value) else options["renameByName"][value]
            )
    return ""
