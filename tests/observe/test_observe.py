"""Dashboards and alerts against the records of a run with preemptions, on a real cluster.

The run is made once (``story``), Prometheus scrapes it as the chart's monitors say, and then every
query is asked for all of it. ``make e2e-observe`` ends with a table of all of them.
"""

from __future__ import annotations

import pytest

from . import expected_alerts, findings, questions, story
from .conftest import Observed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

PAGES = (*questions.DASHBOARDS, questions.ALERTS)
UNSAID = {
    ("parcae-fleet", "Metrics missing"),
    ("alerts", "ParcaeJobStalled"),
    ("alerts", "ParcaeLiveputFarUnderIdeal"),
    ("alerts", "ParcaeReplaysFrequent"),
    ("alerts", "ParcaeNoticesTooLate"),
    ("alerts", "ParcaeMetricsIncomplete"),
}
"""What has nothing to say in this run."""


def test_every_query_of_a_page_is_answered_as_the_records_say(observed: Observed) -> None:
    wrong = [f for f in observed.findings if f.wrong]
    lines: list[str] = []
    findings.table(wrong, lines.append, observed.story.began_s)
    lines += ["── the operator warned ──", *observed.records.warnings]
    assert not wrong, "\n".join(lines)


def test_every_query_was_compared_and_had_something_to_say(observed: Observed) -> None:
    assert {f.question for f in observed.findings} == set(questions.every())
    for finding in observed.findings:
        question = finding.question
        assert len(finding.moments) >= 5, question
        if (question.page, question.title) not in UNSAID:
            assert finding.said, question


def test_the_run_had_what_was_done_to_it(observed: Observed) -> None:
    records, end_s = observed.records, observed.story.ended_s
    assert len(observed.story.noticed) == len(records.lost_noticed) == 1
    assert len(observed.story.killed) == len(records.lost_suddenly) == 3
    status = records.status(end_s)
    assert status is not None
    assert (status["preemptions"], status["preemptionsNoticed"]) == (4, 1)
    assert status["migrations"] == len(records.migrations) >= 2
    assert len(records.times("InstanceJoined")) >= story.INSTANCES["max"] + 4


def test_alerts_fire_when_they_should_and_only_those(observed: Observed) -> None:
    assert observed.fired - expected_alerts.FREE == expected_alerts.FIRING
    assert {rule["name"] for rule in observed.rules if rule["health"] == "ok"} == {
        question.title for question in questions.every() if question.page == questions.ALERTS
    }


def test_scrapes_are_quick_and_small(observed: Observed) -> None:
    assert {each.program for each in observed.scrapes} >= {"operator", "planner", "etcd"}
    for each in observed.scrapes:
        if each.program in ("operator", "planner"):
            assert each.size_bytes <= 100_000
