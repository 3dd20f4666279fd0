"""docs/metrics.md says what the catalogs in the code say."""

from __future__ import annotations

import re

from metric_tables import PAGE, written

from parcae_agent.metrics.catalog import AGENT_METRICS
from parcae_operator.metrics.collector import METRICS
from parcae_optimizer.service_meter import HELP

_SERIES = re.compile(r"\bparcae_[a-z_]+")
ALL = (*METRICS, *AGENT_METRICS)
_NOT_THERE = "parcae_keeper_lag_steps"


def test_page_shows_the_catalogs_of_the_code() -> None:
    page = PAGE.read_text()
    assert page == written(page), "run tests/metrics/metric_tables.py"


def test_page_names_no_metric_that_is_not_there() -> None:
    known = {metric.name for metric in ALL} | set(HELP)
    known |= {name + suffix for name in known for suffix in ("_sum", "_count", "_bucket")}
    assert set(_SERIES.findall(PAGE.read_text())) - known == {_NOT_THERE}


def test_names_tell_units_and_types() -> None:
    for metric in ALL:
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        if metric.unit == "s":
            assert metric.name.removesuffix("_total").endswith("_seconds"), metric.name
        if metric.unit == "bytes":
            assert "_bytes" in metric.name
    assert len({metric.name for metric in ALL}) == len(ALL)
