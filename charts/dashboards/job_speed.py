"""What a job trains, what it could, and what it costs."""

from __future__ import annotations

from charts.dashboards.panels import SAMPLES, also, curves
from charts.dashboards.queries import of_job, over_time
from grafana_foundation_sdk.builders.timeseries import Panel
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

PRICE = "(${price} + 0)"
"""The price as a number: an empty one leaves ``( + 0)``, which PromQL reads as 0."""
PAID = 'state!="pending"'
_COST_WINDOW, _LOOK_S = "15m", 5


def panels() -> list[Panel]:
    """Speed, and cost beside it."""
    return [_speed(), _cost()]


def _speed() -> Panel:
    tells = (
        "Liveput is what the plan is expected to commit per second, preemptions included; "
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
    # Both are sums over the part of the window in which the job was there: a mean over that part
    # beside a rate over all of the window would make young jobs dear. (Prometheus 2 counts both
    # ends of a window: with 180 looks that is half a percent.)
    running = f"sum(max by (state) ({of_job('instances', PAID)}))"
    held = f"{_LOOK_S} * sum_over_time({running}[{_COST_WINDOW}:{_LOOK_S}s])"
    trained = f"sum(increase({of_job('samples_committed_total')}[{_COST_WINDOW}]))"
    expr = f"1000 * {PRICE} / 3600 * {held} / ({trained} > 0) > 0"
    panel = curves("Cost of 1,000 samples", tells, 8, over_time(expr, "cost"), unit="none")
    return panel.decimals(4).no_value("Give the price of an instance hour at the top.")
