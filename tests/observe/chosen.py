"""What a reader of the dashboards has chosen at their top, and what Grafana puts into queries."""

from __future__ import annotations

HORIZON_S = 10
"""The forecast's first point: one planning interval of this run."""
PRICE = 1.25
INTERVAL_S = 15
"""The panels' least step."""
RATE_S = 16
"""Grafana's own rule: a step and a scrape, or four scrapes."""

_VALUES = {
    "$__rate_interval": f"{RATE_S}s",
    "$__interval": f"{INTERVAL_S}s",
    "${horizon}": str(HORIZON_S),
    "$horizon": str(HORIZON_S),
    "${price}": str(PRICE),
    "$job": "gpt",
}


def filled(expr: str, *, fleet: bool) -> str:
    """A query with its dashboard's variables chosen: the job that is preempted, all namespaces."""
    for name, value in {**_VALUES, "$namespace": ".*" if fleet else "default"}.items():
        expr = expr.replace(name, value)
    assert "$" not in expr, expr
    return expr
