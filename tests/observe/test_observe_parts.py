"""The parts of the proof that decide: what is scraped, and when an answer is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from . import findings, monitors, questions
from .compare import Between, Labels, Lag, Moment, compare, merge, wrongs
from .expectation import Expectation
from .expected_fleet import quantile_of_buckets
from .findings import Finding
from .journal import Looks
from .records import Records, labels

A, B = labels(state="a"), labels(state="b")


def monitor(**spec: Any) -> dict[str, Any]:
    endpoint = {"port": "metrics", "path": "/metrics", "honorLabels": True, "interval": "15s"}
    return {
        "metadata": {"name": "parcae-operator", "namespace": "parcae"},
        "spec": {
            "selector": {"matchLabels": {"app": "operator"}},
            "podMetricsEndpoints": [endpoint],
            **spec,
        },
    }


def pod(namespace: str = "parcae", phase: str = "Running", app: str = "operator") -> dict[str, Any]:
    port = {"name": "metrics", "containerPort": 8081}
    return {
        "metadata": {"name": "one", "namespace": namespace, "labels": {"app": app}},
        "spec": {"containers": [{"name": "operator", "ports": [port]}], "nodeName": "safe"},
        "status": {"phase": phase, "podIP": "10.77.1.10"},
    }


def found(one: dict[str, Any], pods: list[dict[str, Any]]) -> list[str]:
    [targets] = monitors.targets_of([one], pods).values()
    return [address for target in targets for address in target["targets"]]


def test_a_monitor_finds_the_pods_that_run_and_have_its_labels() -> None:
    assert found(monitor(), [pod()]) == ["10.77.1.10:8081"]
    for other in (pod("default"), pod(phase="Failed"), pod(app="planner")):
        assert found(monitor(), [other]) == []
    for elsewhere in ({"any": True}, {"matchNames": ["default"]}):
        assert found(monitor(namespaceSelector=elsewhere), [pod("default")]) == ["10.77.1.10:8081"]


def test_what_a_monitor_says_and_is_not_understood_is_an_error() -> None:
    with pytest.raises(ValueError, match="sampleLimit"):
        monitors.config([monitor(sampleLimit=5)], "rules", "folder")


def test_labels_are_those_of_the_metric_only_where_the_monitor_says_so() -> None:
    one = monitor()
    del one["spec"]["podMetricsEndpoints"][0]["honorLabels"]
    [theirs] = monitors.config([monitor()], "rules", "folder")["scrape_configs"]
    [ours] = monitors.config([one], "rules", "folder")["scrape_configs"]
    assert (theirs["honor_labels"], ours["honor_labels"]) == (True, False)


def test_alerts_wait_less_and_ask_the_same() -> None:
    rule = {"alert": "A", "expr": "up == 0", "for": "1h30m"}
    group = {"name": "g", "rules": [rule, {"alert": "B", "expr": "up"}]}
    [made] = monitors.rule_file([{"spec": {"groups": [group]}}])["groups"]
    assert made["rules"] == [{**rule, "for": "30000ms"}, {"alert": "B", "expr": "up"}]


def test_a_wrong_value_is_seen() -> None:
    assert not wrongs({A: 1.0}, {A: 1.0}, 0.0)
    assert wrongs({A: 1.0}, {A: 2.0}, 0.1)
    assert not wrongs({A: 1.95}, {A: 2.0}, 0.1)
    assert wrongs({A: 1.0}, {}, 0.0)
    assert wrongs({}, {A: 1.0}, 0.0)
    assert not wrongs({}, {A: Between(1.0, 1.0, optional=True)}, 0.0)
    assert wrongs({A: float("nan")}, {A: Between(0.0, 9.0)}, 0.0)


def test_what_changed_a_moment_ago_may_be_told_either_way_and_nothing_else() -> None:
    def expect(at_s: float) -> dict[Labels, float]:
        return {A: 1.0} if at_s < 100 else {A: 3.0, B: 1.0}

    lag = Lag(behind_s=2.0, ahead_s=1.0)
    for at_s, value, is_right in ((90, 1, 1), (90, 3, 0), (101, 1, 1), (101, 3, 1), (101, 4, 0)):
        moment = compare(at_s, {A: value}, expect, lag)
        assert moment is not None
        assert (not moment.wrong) is bool(is_right), (at_s, value)
    late = compare(110, {A: 3.0}, expect, lag)
    assert late is not None
    assert late.wrong == ["b nothing, and not 1"]


def test_a_moment_without_records_is_not_compared() -> None:
    assert compare(5.0, {A: 1.0}, lambda at_s: {A: 1.0} if at_s < 5 else None, Lag()) is None


def test_what_one_moment_lacks_is_optional() -> None:
    assert merge([{A: 1.0}, {A: Between(2.0, 4.0)}]) == {A: Between(1.0, 4.0)}
    assert merge([{A: 1.0}, {}]) == {A: Between(1.0, 1.0, optional=True)}


def test_quantiles_are_found_as_prometheus_finds_them() -> None:
    bounds = (1, 10, 100)
    assert quantile_of_buckets(0.5, [50.0], bounds) == 55.0
    assert quantile_of_buckets(0.5, [0.5, 5.0, 6.0, 50.0], bounds) == pytest.approx(5.5)


def test_every_query_has_an_expectation_and_no_expectation_is_left_over() -> None:
    records = Records(Looks([]), {}, [], ("default", "gpt"), [], "")
    asked = {(each.page, each.title, each.name) for each in questions.every()}
    assert set(findings.expected(records)) == asked


@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [("....", ""), (".x..", ""), (".xx.", "12"), ("xx.x", "01"), ("x", "0"), ("...x", "")],
)
def test_a_disagreement_counts_when_it_lasts(pattern: str, wrong: str) -> None:
    moments = [
        Moment(float(n), {}, {}, ["something"] if letter == "x" else [])
        for n, letter in enumerate(pattern)
    ]
    question = questions.Question("page", "title", "", "up", {})
    found = Finding(question, Expectation(lambda at_s: {}, "nobody"), moments)
    assert [moment.at_s for moment in found.wrong] == [float(n) for n in wrong]
