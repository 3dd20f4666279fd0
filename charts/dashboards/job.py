"""The dashboard "Parcae job": what one job gets out of its spot instances, and why."""

from __future__ import annotations

from charts.dashboards import job_changes, job_instances, job_now, job_speed, job_state, variables
from charts.dashboards.page import Page, Row
from charts.dashboards.queries import SOURCE, of_job, over_time
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery


def page() -> Page:
    """The dashboard."""
    sudden = of_job("preemptions_total", 'noticed="false"')
    return Page(
        uid="parcae-job",
        title="Parcae job",
        description="One ParcaeJob: speed, instances, changes of layout, and what they cost.",
        variables=[
            variables.datasource(),
            variables.namespace(),
            variables.job(),
            variables.horizon(),
            variables.price(),
        ],
        rows=[
            Row("Now", job_now.panels()),
            Row("Speed and cost", job_speed.panels()),
            Row("Instances and layout", job_instances.panels()),
            Row("Changes and what they cost", job_changes.panels()),
            Row("State", job_state.panels()),
        ],
        annotations=[
            _event(
                "Plan changes",
                "blue",
                "A new plan was published",
                f"max(changes({of_job('plan_revision')}[1m])) > 0",
            ),
            _event(
                "Sudden preemptions",
                "red",
                "An instance went without a notice in time",
                f"sum(changes({sudden}[1m])) > 0",
            ),
        ],
    )


def _event(name: str, color: str, title: str, expr: str) -> AnnotationQuery:
    # The query stands twice: Grafana reads `target`, versions before 9.3 read `expr`.
    query = over_time(expr, "").ref_id("Anno").interval("30s")
    return (
        AnnotationQuery()
        .name(name)
        .datasource(SOURCE)
        .enable(True)
        .icon_color(color)
        .expr(expr)
        .step("30s")
        .title_format(title)
        .target(query)
    )
