"""What a job trains, what it could, and what it costs."""

from __future__ import annotations

from charts.dashboards.panels import SAMPLES, also, curves
from charts.dashboards.queries import of_job, over_time
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

PRICE = "(${price} + 0)"
"""The price as a number: an empty one leaves ``( + 0)``, which PromQL reads as 0."""
_COST_WINDOW = "15m"


def panels() -> list[Panel]:
    """Speed, and cost beside it."""
    return [_speed(), _cost()]


def _speed() -> Panel:
    tells = (
        "Liveput is what the newest plan expects to commit per second, preemptions included; "
        "throughput is what is measured; ideal is what the fastest layout would train on the "
        "instances that are there, were none to go and changes to cost nothing. Throughput near "
        "liveput: the forecast is right. Far under it: changes cost more than planned, or more "
        "instances go than forecast. Liveput far under ideal: the planner pays for safety."
    )
    queries = [
        over_time(f"max({of_job(f'{what}_samples_per_second')})", what)
        for what in ("ideal", "liveput", "throughput")
    ]
    dashed = also("custom.lineStyle", {"fill": "dash", "dash": [8, 6]})
    return (
        curves("Liveput, throughput, ideal", tells, 16, *queries, unit=SAMPLES)
        .min(0)
        .override_by_name("ideal", [dashed, _color("text")])
        .override_by_name("liveput", [dashed, _color("blue")])
        .override_by_name("throughput", [_color("green"), also("custom.lineWidth", 2)])
    )


def _color(name: str) -> DynamicConfigValue:
    return also("color", {"mode": "fixed", "fixedColor": name})


def _cost() -> Panel:
    tells = (
        "What 1,000 committed samples cost, over the last 15 minutes: instances that run (waiting "
        "pods cost nothing) times the price given at the top, by the samples committed. In the "
        "price's currency. Empty while no price is given, or nothing is committed. It rises where "
        "instances run and do not train."
    )
    running = of_job("instances", 'state!="pending"')
    held = f"sum(avg_over_time({running}[{_COST_WINDOW}]))"
    trained = f"sum(rate({of_job('samples_committed_total')}[{_COST_WINDOW}]))"
    expr = f"1000 * {PRICE} / 3600 * {held} / ({trained} > 0) > 0"
    panel = curves("Cost of 1,000 samples", tells, 8, over_time(expr, "cost"), unit="none")
    return panel.decimals(4).no_value("Give the price of an instance hour at the top.")
