"""Whether operator, planner, board and API server do what jobs need of them."""

from __future__ import annotations

from charts.dashboards.panels import curves, limits, named_values, number, timeline
from charts.dashboards.queries import now, over_time, quantile
from grafana_foundation_sdk.builders import stat, statetimeline, timeseries
from grafana_foundation_sdk.models.common import BigValueTextMode

_UP = named_values({"0": ("down", "red"), "1": ("up", "green")})


def panels() -> list[stat.Panel | statetimeline.Panel | timeseries.Panel]:
    """Now above, over time below."""
    return [
        _up("Board", "board_up", "etcd answers the operator. Down: training goes on, no new plan."),
        _up("Planner", "planner_up", "It answers. Down: plans are made without a forecast."),
        _up("API server", "api_server_up", "It answers. Down: pods can't be asked for."),
        _jobs(),
        _degraded(),
        _missing(),
        _version(),
        _over_time(),
        _planning(),
        _requests(),
        _work(),
    ]


def _up(title: str, metric: str, tells: str) -> stat.Panel:
    query = now(f"min(parcae_{metric})")
    panel = number(title, f"{tells} No data: no operator is scraped.", 4, query)
    return panel.mappings([_UP]).thresholds(limits("red", green=1)).no_value("no operator")


def _jobs() -> stat.Panel:
    tells = "ParcaeJobs that the operator knows, in all namespaces, those that are over included."
    return number("Jobs known", tells, 3, now("sum(parcae_jobs)")).decimals(0)


def _degraded() -> stat.Panel:
    condition = 'parcae_job_condition{namespace=~"$namespace", type="Degraded"}'
    expr = f"count(max by (namespace, job) ({condition}) == 1) or vector(0)"
    tells = "Jobs with the condition Degraded: training may go on, something is wrong. Should be 0."
    panel = number("Degraded jobs", tells, 3, now(expr)).decimals(0)
    return panel.thresholds(limits("green", orange=1))


def _missing() -> stat.Panel:
    tells = (
        "Parts of the operator's own answer that an error keeps out: panels that lack a job. "
        "Should be 0; the operator's log says which part, and why."
    )
    panel = number("Metrics missing", tells, 3, now("sum(parcae_scrape_failures)")).decimals(0)
    return panel.thresholds(limits("green", orange=1)).no_value("no operator")


def _version() -> stat.Panel:
    tells = "The operator's version. Two for long: an old one was not replaced."
    query = now("max by (version) (parcae_build_info)", "{{version}}")
    panel = number("Version", tells, 3, query).text_mode(BigValueTextMode.NAME)
    return panel.no_value("no operator")


def _over_time() -> statetimeline.Panel:
    tells = (
        "What answered when. Short gaps are bridged: nothing is lost. A gap in all rows: the "
        "operator was away, or was not scraped."
    )
    queries = [
        over_time(f"min(parcae_{metric}_up)", legend)
        for metric, legend in (
            ("board", "board"),
            ("planner", "planner"),
            ("api_server", "API server"),
        )
    ]
    return timeline("Reached by the operator", tells, 12, *queries).mappings([_UP])


def _planning() -> timeseries.Panel:
    tells = (
        "Time that one question to the planner takes, by the operator's clock. Well under a "
        "second, since it adds to every pause that is not foreseen. Slow: the planner has too "
        "little CPU for so many instances; look at its limits."
    )
    window = "$__rate_interval"
    queries = [
        over_time(quantile(0.5, "plan_seconds", window), "p50"),
        over_time(quantile(0.99, "plan_seconds", window), "p99"),
    ]
    return curves("Time to plan", tells, 12, *queries, unit="s").min(0).span_nulls(3_600_000)


def _requests() -> timeseries.Panel:
    tells = (
        "What the planner was asked per minute, in all jobs, by how it ended. refused: the "
        "question was wrong, so operator and planner are of different versions; failed: a fault "
        "of the planner's, its log has it."
    )
    rate = "sum by (outcome) (rate(parcae_planner_requests_total[$__rate_interval]))"
    query = over_time(f"60 * {rate}", "{{outcome}}")
    return curves("Questions to the planner", tells, 12, query).min(0)


def _work() -> timeseries.Panel:
    tells = (
        "Of the time to plan, what the planner works and what a question waits for others, as they "
        "are worked on one by one. Waiting near the work or above it: more replicas of the planner."
    )
    window = "$__rate_interval"
    queries = [
        over_time(quantile(0.99, "planner_seconds", window), "work p99"),
        over_time(quantile(0.99, "planner_waiting_seconds", window), "waiting p99"),
    ]
    return curves("Inside the planner", tells, 12, *queries, unit="s").min(0).span_nulls(3_600_000)
