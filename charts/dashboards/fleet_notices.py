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
        "How often a node or pod was said to stand worse, since the operator started, by who said "
        "so. A source that you turned on (docs/notices.md) and that never shows is not working. "
        "Only pod-… and sigterm: the cloud's own notice is not heard, and comes too late."
    )
    query = over_time("sum by (source) (parcae_notices_total)", "{{source}}")
    return steps("Notices by source", tells, 8, query)


def _severities() -> Panel:
    tells = (
        "The same by what they say: suspect and hint may come to nothing, a notice carries a "
        "deadline, gone is too late for one. Many gone and few notices: preemptions are sudden."
    )
    query = over_time("sum by (severity) (parcae_notices_total)", "{{severity}}")
    return steps("Notices by severity", tells, 8, query)


def _lead() -> Panel:
    tells = (
        "Time from when a notice was heard to its deadline, over the last hour. To lose nothing a "
        "leaving worker needs the rest of a step and the time to send its state. p10 under that: "
        "some notices come too late. Clouds give 30 s (GCP, Azure) or 120 s (AWS)."
    )
    queries = [
        over_time(quantile(share, "notice_lead_seconds", "1h"), legend)
        for share, legend in ((0.1, "p10"), (0.5, "p50"), (0.9, "p90"))
    ]
    return curves("Lead of notices", tells, 8, *queries, unit="s").min(0)
