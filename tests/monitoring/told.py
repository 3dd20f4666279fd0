"""What operator and planner tell Prometheus: their lists, and answers with everything in them."""

from __future__ import annotations

import re
from typing import Any

import promql_parser
from tests.metrics.metric_facts import Samples, Source, facts, read, scrape

from parcae_api.events import NoticeGiven
from parcae_api.metric import Kind, Metric
from parcae_operator.metrics.collector import METRICS
from parcae_operator.metrics.facts import NodeGroup
from parcae_operator.metrics.meter import Meter
from parcae_optimizer.service_meter import ServiceMeter

__all__ = ["METRICS", "PLANNERS", "SERIES", "TARGET_LABELS", "Kind", "answer", "selects", "series"]

_SUFFIXES = {
    Kind.GAUGE: ("",),
    Kind.COUNTER: ("",),
    Kind.SUMMARY: ("_sum", "_count"),
    Kind.HISTOGRAM: ("_sum", "_count", "_bucket"),
}


def series(metric: Metric) -> dict[str, frozenset[str]]:
    """Names of the time series that a metric becomes, each with its labels."""
    labels = frozenset(metric.labels)
    return {
        metric.name + suffix: labels | {"le"} if suffix == "_bucket" else labels
        for suffix in _SUFFIXES[metric.kind]
    }


PLANNERS = read(ServiceMeter().text().decode())
"""A scrape of the planner."""
SERIES = {name: labels for metric in METRICS for name, labels in series(metric).items()}
SERIES |= {name: frozenset(dict(labels)) for name, labels in PLANNERS}
TARGET_LABELS = frozenset({"namespace"})
"""What Prometheus adds to operator-wide series: whose operator it is."""


def answer() -> Samples:
    """A scrape of planner and operator, with the job team/gpt, in which all labels are there."""
    groups = {
        NodeGroup("a", True, "healthy"): 3,
        NodeGroup("b", True, "leaving"): 1,
        NodeGroup("b", False, "healthy"): 1,
    }
    meter = Meter()
    notice = NoticeGiven(
        at_unix_s=0.0, incarnation="a", node="n", deadline_unix_s=30.0, source="sigterm"
    )
    meter.noticed(notice)
    return scrape(Source(looks=[facts], groups=lambda: groups), meter) | PLANNERS


def selects(selector: Any, samples: Samples) -> bool:
    """Whether a selector, as the parser makes it, finds anything in an answer."""
    return any(
        name == selector.name
        and all(_fits(matcher, dict(labels)) for matcher in selector.matchers.matchers)
        for name, labels in samples
    )


def _fits(matcher: Any, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    match matcher.op:
        case promql_parser.MatchOp.Equal:
            return bool(value == matcher.value)
        case promql_parser.MatchOp.NotEqual:
            return bool(value != matcher.value)
        case promql_parser.MatchOp.Re:
            return re.fullmatch(matcher.value, value) is not None
        case _:
            return re.fullmatch(matcher.value, value) is None
