"""What dashboards and alerts ask Prometheus for: their PromQL, taken apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "charts" / "parcae"
RULES = CHART / "rules" / "parcae.yaml"
DASHBOARDS = ("parcae-job", "parcae-fleet")

VALUES = {
    "$__rate_interval": "1m",
    "$__interval": "15s",
    "${horizon}": "360",
    "$horizon": "360",
    "$namespace": "team",
    "$job": "gpt",
}


@dataclass(frozen=True)
class Asked:
    """Where an expression stands, the expression, and how its answer is named."""

    where: str
    expr: str
    legend: str = ""


def dashboard(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "dashboards" / f"{name}.json").read_text())
    return found


def panels(name: str) -> list[dict[str, Any]]:
    """All panels that draw something: rows are only headings."""
    return [each for each in dashboard(name)["panels"] if each["type"] != "row"]


def of_dashboard(name: str) -> Iterator[Asked]:
    for panel in panels(name):
        for target in panel.get("targets", []):
            yield Asked(f"{name}: {panel['title']}", target["expr"], target["legendFormat"])
    for annotation in dashboard(name)["annotations"]["list"]:
        if "target" in annotation:
            yield Asked(f"{name}: {annotation['name']}", annotation["target"]["expr"])


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def of_rules() -> Iterator[Asked]:
    for rule in rules():
        yield Asked(rule["alert"], rule["expr"])


def filled(expr: str, price: str = "") -> str:
    """An expression with its dashboard's variables chosen."""
    for name, value in {**VALUES, "${price}": price}.items():
        expr = expr.replace(name, value)
    assert "$" not in expr, expr
    return expr


def parts(expr: str) -> list[Any]:
    """All nodes of an expression, as the parser makes them."""
    found: list[Any] = []
    promql_parser.walk(promql_parser.parse(filled(expr)), found.append)
    return found


def selectors(expr: str) -> dict[str, set[str]]:
    """Names of series that an expression selects, with the labels that it selects by."""
    found: dict[str, set[str]] = {}
    for part in parts(expr):
        if isinstance(part, promql_parser.VectorSelector):
            labels = {each.name for each in part.matchers.matchers}
            found.setdefault(part.name or "", set()).update(labels)
    return found


def grouped(expr: str) -> set[str]:
    """Labels that an expression groups or joins by."""
    found: set[str] = set()
    for part in parts(expr):
        modifier = getattr(part, "modifier", None)
        if modifier is None:
            continue
        matching = getattr(modifier, "matching", modifier)
        found.update(getattr(matching, "labels", None) or [])
        found.update(getattr(modifier, "group_labels", None) or [])
    return found


def named(text: str) -> set[str]:
    """Labels that a legend or an alert's words name."""
    return set(re.findall(r"{{\s*(?:\$labels\.)?(\w+)\s*}}", text))
