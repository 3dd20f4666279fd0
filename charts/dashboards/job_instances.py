"""What a job has to train on, what was foreseen, and the layout that was chosen for it."""

from __future__ import annotations

from charts.dashboards.panels import also, curves, listing, stacked, steps, transform
from charts.dashboards.queries import PER_JOB, newest, of_job, over_time, rows
from grafana_foundation_sdk.builders import table, timeseries
from grafana_foundation_sdk.builders.prometheus import Dataquery


def panels() -> list[timeseries.Panel | table.Panel]:
    """Instances above, layouts below."""
    return [_instances(), _foreseen(), _forecast(), _layout(), _plans()]


def _instances() -> timeseries.Panel:
    tells = (
        "Instances by what they do. pending: pods that wait for a node, which is what makes an "
        "autoscaler look for spot capacity; always pending: there is none, or no node fits. "
        "starting for minutes: large images. standby for long: the layout has no use for them. "
        "Under min nothing trains."
    )
    by_state = f"max by (state) ({of_job('instances')})"
    queries = [
        over_time(by_state, "{{state}}"),
        over_time(f"max({of_job('instances_min')})", "min"),
        over_time(f"max({of_job('instances_max')})", "max"),
    ]
    bound = [
        also("custom.stacking", {"mode": "none", "group": "A"}),
        also("custom.fillOpacity", 0),
        also("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}),
        also("color", {"mode": "fixed", "fixedColor": "text"}),
    ]
    return stacked("Instances", tells, 12, *queries).override_by_regexp("/^(min|max)$/", bound)


def _foreseen() -> timeseries.Panel:
    tells = (
        "The forecast made some time before (chosen at the top) for this moment, against the "
        "instances that were ready. The line should lie in the band four times of five. Mostly "
        "below: preemptions come in bursts that the model does not know. Mostly above: plans are "
        "more careful than they need to be."
    )

    def forecast(share: float, legend: str) -> Dataquery:
        matchers = f'horizon_seconds="$horizon", quantile="{share}"'
        series = f"{of_job('forecast_instances', matchers)} offset ${{horizon}}s"
        return over_time(f"max({series})", legend)

    there = of_job("instances", 'state=~"training|standby"')
    queries = [
        forecast(0.1, "forecast 10 %"),
        forecast(0.5, "forecast median"),
        forecast(0.9, "forecast 90 %"),
        over_time(f"sum(max by (state) ({there}))", "came"),
    ]
    blue = also("color", {"mode": "fixed", "fixedColor": "blue"})
    edge = [blue, also("custom.lineWidth", 0)]
    band = [*edge, also("custom.fillBelowTo", "forecast 10 %"), also("custom.fillOpacity", 25)]
    return (
        curves("Instances against their forecast", tells, 12, *queries)
        .min(0)
        .override_by_name("forecast 10 %", edge)
        .override_by_name("forecast median", [blue, also("custom.lineStyle", {"fill": "dash"})])
        .override_by_name("forecast 90 %", band)
        .override_by_name("came", [also("color", {"mode": "fixed", "fixedColor": "green"})])
    )


def _forecast() -> table.Panel:
    tells = (
        "What the newest plan was made for: instances that far ahead; in one case of ten there "
        "are no more than the 0.1 column says. Empty: no forecast, so the layout answers what is "
        "there now (see the condition Degraded)."
    )
    expr = f"max by (horizon_seconds, quantile) ({of_job('forecast_instances')})"
    tidy = [
        transform(
            "convertFieldType",
            conversions=[{"targetField": "horizon_seconds", "destinationType": "number"}],
        ),
        transform("sortBy", fields={}, sort=[{"field": "horizon_seconds"}]),
        transform(
            "groupingToMatrix",
            rowField="horizon_seconds",
            columnField="quantile",
            valueField="Value",
        ),
    ]
    return listing("Forecast now", tells, 6, [rows(expr)], tidy).decimals(1)


def _layout() -> timeseries.Panel:
    tells = (
        "Data replicas × pipeline stages of the plan in force; 0: paused. Layouts that alternate "
        "at every change of the instances: the gain of each must be worth its pause (see below)."
    )
    queries = [
        over_time(newest("configuration", matchers=f'axis="{axis}"'), legend)
        for axis, legend in (("data", "data replicas"), ("pipeline", "pipeline stages"))
    ]
    return steps("Layout", tells, 10, *queries).min(0)


def _plans() -> table.Panel:
    tells = (
        "Plans as they were published, newest first, with the layout of each. Their reasons: "
        "`parcae status`. Two of one scrape show as the newer one."
    )
    revision = of_job("plan_revision")
    changed = (
        f"max by ({PER_JOB}) ({revision}) != max by ({PER_JOB}) ({revision} offset $__interval)"
    )

    def then(axis: str) -> str:
        series = of_job("configuration", f'axis="{axis}"')
        return f"max by ({PER_JOB}) ({series}) and ({changed})"

    queries = [
        over_time(changed, "revision").interval("15s"),
        over_time(then("data"), "replicas").interval("15s"),
        over_time(then("pipeline"), "stages").interval("15s"),
    ]
    tidy = [
        transform("joinByField", byField="Time", mode="outer"),
        transform("sortBy", fields={}, sort=[{"field": "Time", "desc": True}]),
    ]
    return listing("Last plans", tells, 8, queries, tidy).decimals(0).interval("15s")
