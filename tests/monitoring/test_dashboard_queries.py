"""No query asks for what nobody measures: a wrong name would only be an empty panel."""

from __future__ import annotations

import promql_parser
import pytest
from asked import (
    DASHBOARDS,
    Asked,
    dashboard,
    filled,
    grouped,
    named,
    of_dashboard,
    of_rules,
    parts,
    selectors,
)
from told import METRICS, PLANNERS, SERIES, TARGET_LABELS, Kind, answer, selects, series

ALL = [asked for name in DASHBOARDS for asked in of_dashboard(name)]


def ids(asked: Asked) -> str:
    return asked.where


@pytest.mark.parametrize("asked", ALL, ids=ids)
def test_query_asks_for_what_is_there(asked: Asked) -> None:
    chosen = selectors(asked.expr)
    assert chosen
    for name, labels in chosen.items():
        assert name in SERIES
        assert labels <= SERIES[name]
    known = set().union(*(SERIES[name] for name in chosen)) | TARGET_LABELS
    assert grouped(asked.expr) <= known
    assert named(asked.legend) <= known


@pytest.mark.parametrize("asked", ALL, ids=ids)
def test_legend_names_labels_that_the_answer_still_has(asked: Asked) -> None:
    assert named(asked.legend) <= grouped(asked.expr)


@pytest.mark.parametrize("asked", [*ALL, *of_rules()], ids=ids)
def test_what_it_selects_is_in_an_operators_answer(asked: Asked) -> None:
    # Names of labels are not enough: a state or a phase that nobody has selects nothing either.
    samples = answer()
    for part in parts(asked.expr):
        if isinstance(part, promql_parser.VectorSelector):
            assert selects(part, samples), part.prettify()


@pytest.mark.parametrize("price", ["", "0", "1.25", "12", "0.5"])
def test_any_price_is_promql(price: str) -> None:
    [cost] = [asked for asked in ALL if "${price}" in asked.expr]
    promql_parser.parse(filled(cost.expr, price))


def test_every_metric_is_drawn() -> None:
    drawn = {name for asked in ALL for name in selectors(asked.expr)}
    undrawn = {metric.name for metric in METRICS if not drawn & series(metric).keys()}
    assert undrawn == set()
    planners = {name for name, _ in PLANNERS if name.endswith(("_bucket", "_total"))}
    assert planners <= drawn


def test_counters_are_never_read_as_rates_of_gauges() -> None:
    gauges = {metric.name for metric in METRICS if metric.kind is Kind.GAUGE}
    for asked in ALL:
        for call in ("rate(", "increase("):
            for piece in asked.expr.split(call)[1:]:
                name = piece.partition("{")[0].partition("[")[0]
                assert name not in gauges, asked.where


@pytest.mark.parametrize("name", DASHBOARDS)
def test_variables_ask_for_what_is_there(name: str) -> None:
    for variable in dashboard(name)["templating"]["list"]:
        if variable["type"] == "query":
            inner = variable["query"]["query"]
            assert inner.startswith("label_values(")
            asked, _, label = inner.removeprefix("label_values(").removesuffix(")").rpartition(",")
            for known, labels in selectors(asked).items():
                assert labels | {label.strip()} <= SERIES[known]
