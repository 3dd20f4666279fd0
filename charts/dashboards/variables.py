"""What a reader chooses at the top of a dashboard."""

from __future__ import annotations

from charts.dashboards.queries import SOURCE
from grafana_foundation_sdk.builders.dashboard import (
    CustomVariable,
    DatasourceVariable,
    QueryVariable,
    TextBoxVariable,
)
from grafana_foundation_sdk.models.dashboard import VariableOption, VariableRefresh, VariableSort

_HORIZONS_S = ("60", "180", "360", "720")
_CHOSEN = "360"


def datasource() -> DatasourceVariable:
    """Which Prometheus."""
    return DatasourceVariable("datasource").label("Data source").type("prometheus")


def _labels(name: str, label: str, series: str) -> QueryVariable:
    asked = f"label_values({series}, {label})"
    query: dict[str, object] = {
        "qryType": 1,  # the editor's number for label_values
        "query": asked,
        "refId": "PrometheusVariableQueryEditor-VariableQuery",
    }
    return (
        QueryVariable(name)
        .datasource(SOURCE)
        .query(query)
        .definition(asked)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


def namespace() -> QueryVariable:
    """The namespace of the job."""
    return _labels("namespace", "namespace", "parcae_job_phase").label("Namespace")


def namespaces() -> QueryVariable:
    """Some namespaces, or all."""
    all_of_them = VariableOption(text="All", value="$__all")
    return (
        _labels("namespace", "namespace", "parcae_job_phase")
        .label("Namespaces")
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(all_of_them)
    )


def job() -> QueryVariable:
    """The job."""
    return _labels("job", "job", 'parcae_job_phase{namespace="$namespace"}').label("Job")


def horizon() -> CustomVariable:
    """How far ahead the forecast looks that is compared with what came.

    The operator tells four points of the horizon; these are those of the usual one, twelve minutes,
    and others can be typed in. A fixed list: a query that finds nothing (no planner yet) would
    leave ``offset s`` in the panel's queries, which is no PromQL.
    """
    return (
        CustomVariable("horizon")
        .label("Forecast made, seconds before")
        .values(",".join(_HORIZONS_S))
        .current(VariableOption(text=_CHOSEN, value=_CHOSEN, selected=True))
        .options([VariableOption(selected=s == _CHOSEN, text=s, value=s) for s in _HORIZONS_S])
    )


def price() -> TextBoxVariable:
    """What an hour of one instance costs, in any currency; empty while nobody said."""
    return (
        TextBoxVariable("price")
        .label("Price of an instance hour")
        .description("In any currency. Empty: the cost panel stays empty.")
        .default_value("")
        .current(VariableOption(text="", value=""))
        .options([VariableOption(selected=True, text="", value="")])
    )
