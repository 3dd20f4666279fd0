"""PromQL that more than one panel needs.

Gauges are aggregated by ``max`` and counters' increases by ``sum``: for a moment after the operator
was replaced, Prometheus has each series twice, once from each pod.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
PER_JOB = "namespace, job"


def of_job(metric: str, matchers: str = "") -> str:
    """The series of the chosen job."""
    more = f", {matchers}" if matchers else ""
    return f'parcae_{metric}{{namespace="$namespace", job="$job"{more}}}'


def of_jobs(metric: str, matchers: str = "") -> str:
    """The series of all jobs of the chosen namespaces."""
    more = f", {matchers}" if matchers else ""
    return f'parcae_{metric}{{namespace=~"$namespace"{more}}}'


def newest(metric: str, by: str = "", matchers: str = "") -> str:
    """A gauge or counter of the chosen job as it stands; counters count since the job began."""
    return (
        f"max by ({by}) ({of_job(metric, matchers)})" if by else f"max({of_job(metric, matchers)})"
    )


def rate(metric: str, by: str = "") -> str:
    """A counter of the chosen job per second."""
    inner = f"rate({of_job(metric)}[$__rate_interval])"
    return f"sum by ({by}) ({inner})" if by else f"sum({inner})"


def quantile(share: float, histogram: str, window: str) -> str:
    """A quantile of an operator-wide histogram over a window."""
    inner = f"sum by (le) (rate(parcae_{histogram}_bucket[{window}]))"
    return f"histogram_quantile({share}, {inner})"


def over_time(expr: str, legend: str) -> Dataquery:
    """A query whose answer is drawn over time."""
    return Dataquery().expr(expr).legend_format(legend).range()


def now(expr: str, legend: str = "") -> Dataquery:
    """A query whose answer is one value for each series."""
    return Dataquery().expr(expr).legend_format(legend).instant()


def rows(expr: str) -> Dataquery:
    """A query whose answer is a table: a row for each series, a column for each label."""
    return now(expr).format(PromQueryFormat.TABLE)
