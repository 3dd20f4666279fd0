"""What Parcae's programs tell Prometheus: each metric with its type and labels.

Dashboards and alerts may ask for these and no others; tests hold them to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram", "summary"]
_SUFFIXES: dict[Kind, tuple[str, ...]] = {
    "gauge": ("",),
    "counter": ("",),  # the listed name has its ``_total``
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}


@dataclass(frozen=True)
class Metric:
    """A metric of the operator's."""

    name: str
    kind: Kind
    labels: frozenset[str]

    @property
    def series(self) -> dict[str, frozenset[str]]:
        """Names of the time series that it becomes, each with its labels."""
        return {
            self.name + suffix: self.labels | {"le"} if suffix == "_bucket" else self.labels
            for suffix in _SUFFIXES[self.kind]
        }


def _of_job(kind: Kind, name: str, *labels: str) -> Metric:
    return Metric(f"parcae_{name}", kind, frozenset({"namespace", "job", *labels}))


def _of_all(kind: Kind, name: str, *labels: str) -> Metric:
    return Metric(f"parcae_{name}", kind, frozenset(labels))


METRICS = (
    _of_job("gauge", "liveput_samples_per_second"),
    _of_job("gauge", "throughput_samples_per_second"),
    _of_job("gauge", "ideal_samples_per_second"),
    _of_job("gauge", "instances", "state"),
    _of_job("gauge", "instances_min"),
    _of_job("gauge", "instances_max"),
    _of_job("gauge", "forecast_instances", "horizon_seconds", "quantile"),
    _of_job("gauge", "configuration", "axis"),
    _of_job("gauge", "plan_revision"),
    _of_job("counter", "preemptions_total", "noticed"),
    _of_job("counter", "migrations_total", "kind"),
    _of_job("summary", "migration_pause_seconds", "kind"),
    _of_job("counter", "migration_bytes_total", "kind"),
    _of_job("counter", "steps_committed_total"),
    _of_job("counter", "steps_replayed_total"),
    _of_job("counter", "samples_committed_total"),
    _of_job("gauge", "checkpoint_age_seconds"),
    _of_job("gauge", "job_condition", "type"),
    _of_job("gauge", "job_phase", "phase"),
    _of_all("histogram", "plan_seconds"),
    _of_all("gauge", "board_up"),
    _of_all("gauge", "planner_up"),
    _of_all("gauge", "api_server_up"),
    _of_all("gauge", "jobs"),
    _of_all("counter", "notices_total", "source", "severity"),
    _of_all("histogram", "notice_lead_seconds"),
    _of_all("gauge", "nodes", "zone", "spot", "state"),
    _of_all("gauge", "build_info", "version"),
)

SERIES = {name: labels for metric in METRICS for name, labels in metric.series.items()}
"""All series by name, with the labels that each has of its own."""
TARGET_LABELS = frozenset({"namespace"})
"""Labels that Prometheus adds to operator-wide series: whose operator it is."""
