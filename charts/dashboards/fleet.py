"""The dashboard "Parcae fleet": all jobs, the capacity that they share, and Parcae's own health."""

from __future__ import annotations

from charts.dashboards import fleet_capacity, fleet_health, fleet_jobs, fleet_notices, variables
from charts.dashboards.page import Page, Row


def page() -> Page:
    """The dashboard."""
    return Page(
        uid="parcae-fleet",
        title="Parcae fleet",
        description="All ParcaeJobs, spot capacity, notices, and the health of Parcae itself.",
        variables=[variables.datasource(), variables.namespaces()],
        rows=[
            Row("Health", fleet_health.panels()),
            Row("Jobs", fleet_jobs.panels()),
            Row("Capacity", fleet_capacity.panels()),
            Row("Notices", fleet_notices.panels()),
        ],
    )
