"""The alerts: understood by Prometheus, firing when they should and only then, with a runbook each.

What each answers to is in ``alerts/*.test.yaml``, which ``promtool test rules`` plays.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from asked import ROOT, RULES, Asked, grouped, named, of_rules, rules, selectors
from told import SERIES, TARGET_LABELS

Promtool = Callable[..., subprocess.CompletedProcess[str]]
CASES = sorted((Path(__file__).parent / "alerts").glob("*.test.yaml"))
RUNBOOKS = "docs/alerts.md"
ALERTS = {rule["alert"]: rule for rule in rules()}


def played() -> list[dict[str, Any]]:
    """All moments at which some case looks at an alert."""
    tests = [test for path in CASES for test in yaml.safe_load(path.read_text())["tests"]]
    return [moment for test in tests for moment in test["alert_rule_test"]]


def sections() -> dict[str, str]:
    """The runbooks by the alert that they are for."""
    text = (ROOT / RUNBOOKS).read_text()
    _, *pieces = re.split(r"^## (?=Parcae)", text, flags=re.MULTILINE)
    return {piece.partition("\n")[0].strip(): piece.partition("\n")[2] for piece in pieces}


def test_rules_are_understood(promtool: Promtool) -> None:
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_alerts_fire_when_they_should(promtool: Promtool, path: Path) -> None:
    done = promtool("test", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ALERTS)
def test_each_is_played_firing_and_not(name: str) -> None:
    moments = [moment for moment in played() if moment["alertname"] == name]
    assert any(moment.get("exp_alerts") for moment in moments)
    assert any(not moment.get("exp_alerts") for moment in moments)


@pytest.mark.parametrize("name", ALERTS)
def test_a_rule_that_never_or_always_fires_would_be_noticed(
    promtool: Promtool, name: str, tmp_path: Path
) -> None:
    # A case that looks at the wrong alert, or at the wrong time, would pass whatever the rule says.
    for expr in ("vector(1) > 1", f"({ALERTS[name]['expr']}) or vector(1)"):
        changed = yaml.safe_load(RULES.read_text())
        for group in changed["groups"]:
            for rule in group["rules"]:
                if rule["alert"] == name:
                    rule["expr"] = expr
                    rule.pop("for", None)
        (tmp_path / "rules.yaml").write_text(yaml.safe_dump(changed))
        failed = 0
        for path in CASES:
            if f"alertname: {name}" not in path.read_text():
                continue
            case = yaml.safe_load(path.read_text()) | {"rule_files": ["rules.yaml"]}
            (tmp_path / "case.yaml").write_text(yaml.safe_dump(case))
            failed += promtool("test", "rules", tmp_path / "case.yaml").returncode != 0
        assert failed, expr


@pytest.mark.parametrize("asked", list(of_rules()), ids=lambda asked: asked.where)
def test_each_asks_for_what_is_there(asked: Asked) -> None:
    chosen = selectors(asked.expr)
    assert chosen
    for name, labels in chosen.items():
        assert labels <= SERIES[name]
    known = set().union(*(SERIES[name] for name in chosen)) | TARGET_LABELS
    assert grouped(asked.expr) <= known


@pytest.mark.parametrize("name", ALERTS)
def test_each_says_what_where_and_what_to_do(name: str) -> None:
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    said = named(rule["annotations"]["description"])
    assert said <= grouped(rule["expr"])  # a label that the answer lacks would be an empty word
    if "job" in grouped(rule["expr"]) and "histogram_quantile" not in rule["expr"]:
        assert said == {"namespace", "job"}
    assert rule["annotations"]["runbook_url"] == f"{RUNBOOKS}#{name.lower()}"


def test_each_has_a_runbook_and_no_runbook_is_left_over() -> None:
    found = sections()
    assert list(found) == list(ALERTS)
    for name, text in found.items():
        for part in ("**Means.**", "**Look at.**", "**Do.**"):
            assert part in text, name
        assert f"`{ALERTS[name]['labels']['severity']}`" in text, name
