"""The metrics of one answer, as Prometheus' client wants them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family

from parcae_api.metric import Kind, Metric

_CLASSES: Mapping[Kind, type[CounterMetricFamily | GaugeMetricFamily | SummaryMetricFamily]] = {
    Kind.GAUGE: GaugeMetricFamily,
    Kind.COUNTER: CounterMetricFamily,
    Kind.SUMMARY: SummaryMetricFamily,
}


class Families:
    """Takes values in and gives families out.

    Args:
        metrics: Which there may be; those without any value are left out.
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._families = {
            metric.name: _CLASSES[metric.kind](metric.name, metric.help, labels=metric.labels)
            for metric in metrics
            if metric.kind in _CLASSES
        }

    def add(self, metric: Metric, labels: Iterable[str], value: float) -> None:
        """One value of a gauge or counter."""
        family = self._families[metric.name]
        assert not isinstance(family, SummaryMetricFamily)
        family.add_metric(list(labels), value)

    def add_summary(self, metric: Metric, labels: Iterable[str], count: int, total: float) -> None:
        """One summary: how many, and their sum."""
        family = self._families[metric.name]
        assert isinstance(family, SummaryMetricFamily)
        family.add_metric(list(labels), count_value=count, sum_value=total)

    def __iter__(self) -> Iterator[Family]:
        return (family for family in self._families.values() if family.samples)
