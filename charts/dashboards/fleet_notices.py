"""How instances announce that they go, and how long before."""

from __future__ import annotations

from charts.dashboards.panels import curves, steps
from charts.dashboards.queries import over_time, quantile
from grafana_foundation_sdk.builders.timeseries import Panel


def panels() -> list[Panel]:
    """Who says it, how sure it is, and how early."""
    return [_sources(), _severities(), _lead()]


def _sources() -> Panel:
    tells = (
        "Signals since the operator began to count, by where they came from. A source that you "
        "turned on (docs/notices.md) and that stays at nothing is not working."
    )
    query = over_time("sum by (source) (parcae_notices_total)", "{{source}}")
    return steps("Notices by source", tells, 8, query)


def _severities() -> Panel:
    tells = (
        "The same by what they say: hints may come to nothing, notices carry a deadline. Many "
        "hints and no notices: preemptions will be sudden, or do not come."
    )
    query = over_time("sum by (severity) (parcae_notices_total)", "{{severity}}")
    return steps("Notices by severity", tells, 8, query)


def _lead() -> Panel:
    tells = (
        "Time from a notice to the instance's end, over the last hour. To lose nothing a leaving "
        "worker needs the rest of a step and the time to send its state. p10 under that: some "
        "notices come too late. Clouds give 30 s (GCP, Azure) or 120 s (AWS)."
    )
    queries = [
        over_time(quantile(share, "notice_lead_seconds", "1h"), legend)
        for share, legend in ((0.1, "p10"), (0.5, "p50"), (0.9, "p90"))
    ]
    return curves("Lead of notices", tells, 8, *queries, unit="s").min(0)
