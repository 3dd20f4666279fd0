"""Every query of the dashboards, asked of Prometheus' own engine, finds something to draw.

``promtool test rules`` plays an hour of what an operator tells of a job that trains while instances
come and go: its answer once, with what only grows growing at every scrape.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from asked import DASHBOARDS, Asked, filled, of_dashboard
from told import METRICS, PLANNERS, Kind, answer, series

Promtool = Callable[..., subprocess.CompletedProcess[str]]
ASKED = [asked for name in DASHBOARDS for asked in of_dashboard(name)]
SCRAPES = 240
GROWING = {
    *(name for metric in METRICS if metric.kind is not Kind.GAUGE for name in series(metric)),
    *(name for name, _ in PLANNERS),
    "parcae_plan_revision",
}


def played(*, without: str = "") -> list[dict[str, str]]:
    """The hour, but for one series."""
    found = []
    for (name, labels), value in answer().items():
        if name != without:
            written = ", ".join(f'{label}="{text}"' for label, text in labels)
            step = 1 if name in GROWING else 0
            found.append({"series": f"{name}{{{written}}}", "values": f"{value}+{step}x{SCRAPES}"})
    return found


def case(asked: Asked, price: str = "1.25") -> dict[str, Any]:
    """Whether an answer has anything in it."""
    expr = f"count({filled(asked.expr, price)}) > bool 0"
    return {"expr": expr, "eval_time": "55m", "exp_samples": [{"labels": "{}", "value": 1}]}


def play(promtool: Promtool, folder: Path, cases: list[dict[str, Any]], **changes: str) -> str:
    """What promtool has to say against the cases; empty if nothing."""
    test = {
        "interval": "15s",
        "input_series": played(**changes),
        "promql_expr_test": cases,
    }
    file = folder / "asked.test.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "15s", "tests": [test]}))
    done = promtool("test", "rules", file)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_query_is_answered(promtool: Promtool, tmp_path: Path) -> None:
    assert len(ASKED) > 50
    assert play(promtool, tmp_path, [case(asked) for asked in ASKED]) == ""


def test_an_answer_that_is_empty_would_be_noticed(promtool: Promtool, tmp_path: Path) -> None:
    said = play(promtool, tmp_path, [case(asked) for asked in ASKED], without="parcae_nodes")
    assert "parcae_nodes" in said


@pytest.mark.parametrize("price", ["", "0"])
def test_no_price_is_no_cost_and_no_error(promtool: Promtool, tmp_path: Path, price: str) -> None:
    [cost] = [asked for asked in ASKED if "${price}" in asked.expr]
    nothing = case(cost, price) | {"exp_samples": []}
    assert play(promtool, tmp_path, [nothing]) == ""


def test_the_cost_is_of_the_instances_that_run(promtool: Promtool, tmp_path: Path) -> None:
    [cost] = [asked for asked in ASKED if "${price}" in asked.expr]
    # 13 instances run and 3 wait, an hour costs 7.20, and 1/15 of a sample is committed a second.
    value = 1000 * 7.20 / 3600 * 13 * 15
    expr = f"round({filled(cost.expr, '7.20')}, 10)"
    nothing_else = [{"labels": "{}", "value": value}]
    asked = [
        {"expr": expr, "eval_time": at, "exp_samples": nothing_else} for at in ("55m", "10m", "5m")
    ]  # also of a job that is younger than the window
    assert play(promtool, tmp_path, asked) == ""
