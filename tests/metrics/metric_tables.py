"""The tables of docs/metrics.md, made from the catalogs in the code. Run it to write them anew."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from parcae_agent.metrics.catalog import AGENT_METRICS
from parcae_api.metric import Metric
from parcae_operator.metrics.fleet_catalog import FLEET_METRICS
from parcae_operator.metrics.job_catalog import JOB_METRICS, OF_JOB
from parcae_optimizer.service_meter import HELP, REQUESTS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def tables() -> dict[str, str]:
    """By name."""
    return {
        "job": _metrics(JOB_METRICS),
        "fleet": _metrics(FLEET_METRICS),
        "planner": _planner(),
        "agents": _agents(),
    }


def written(page: str) -> str:
    """The page with its tables as they should be."""
    for name, table in tables().items():
        marks = f"<!-- table: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(f"{marks[0]}.*?{marks[1]}", re.DOTALL)
        assert pattern.search(page), f"the page has no place for the table {name!r}"
        page = pattern.sub(lambda _, m=marks, t=table: f"{m[0]}\n{t}\n{m[1]}", page)
    return page


def _metrics(metrics: Iterable[Metric]) -> str:
    rows = [
        [
            f"`{metric.name}`",
            metric.kind.value,
            ", ".join(f"`{label}`" for label in metric.labels if label not in OF_JOB),
            metric.unit,
            metric.help,
            metric.source,
            metric.restart.value,
        ]
        for metric in metrics
    ]
    header = ["metric", "type", "labels", "unit", "what it means", "from", "after a restart"]
    return _table(header, rows)


def _agents() -> str:
    rows = [
        [
            f"`{metric.name}`",
            metric.kind.value,
            ", ".join(f"`{label}`" for label in metric.labels if label not in OF_JOB),
            metric.unit,
            metric.help,
            metric.source,
        ]
        for metric in AGENT_METRICS
    ]
    return _table(["metric", "type", "labels", "unit", "what it means", "from"], rows)


def _planner() -> str:
    rows = [
        [
            f"`{name}`",
            "counter" if name == REQUESTS else "histogram",
            "`kind`, `outcome`" if name == REQUESTS else "`kind`",
            "requests" if name == REQUESTS else "s",
            text,
        ]
        for name, text in HELP.items()
    ]
    return _table(["metric", "type", "labels", "unit", "what it means"], rows)


def _table(header: list[str], lines: Iterable[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
