"""The whole answer: complete, bounded, fast, and as much of it as can be told."""

from __future__ import annotations

import logging
import math
import time

import pytest
from metric_facts import Source, Told, broken, facts, read, registry_of, scrape
from prometheus_client import Gauge
from prometheus_client.exposition import generate_latest

from parcae_api.events import NoticeGiven
from parcae_api.metric import Kind
from parcae_operator.metrics.collector import METRICS
from parcae_operator.metrics.facts import JobFacts, NodeGroup
from parcae_operator.metrics.meter import Meter
from parcae_operator.metrics.text import write_text
from parcae_operator.signals import NodeState, Severity

NODES = {
    NodeGroup("a", True, "healthy"): 5,
    NodeGroup("a", True, "leaving"): 1,
    NodeGroup("b", False, "hinted"): 2,
}
_SUFFIXES = {
    Kind.GAUGE: [""],
    Kind.COUNTER: [""],
    Kind.SUMMARY: ["_sum", "_count"],
    Kind.HISTOGRAM: ["_sum", "_count", "_bucket"],
}


def full() -> Source:
    return Source(looks=[facts], groups=lambda: NODES)


def full_meter() -> Meter:
    meter = Meter()
    meter.planned(0.02)
    meter.noticed(notice("sigterm"))
    return meter


def notice(source: str, lead_s: float = 25.0) -> NoticeGiven:
    return NoticeGiven(
        at_unix_s=1000.0, incarnation="a", node="n", deadline_unix_s=1000.0 + lead_s, source=source
    )


def test_the_answer_is_what_the_catalog_says() -> None:
    samples = scrape(full(), full_meter())
    expected = {
        metric.name + suffix: {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
        for metric in METRICS
        for suffix in _SUFFIXES[metric.kind]
    }
    found = {name: {label for label, _ in labels} for name, labels in samples}
    assert found == expected


def test_no_label_but_those_that_are_bounded() -> None:
    unbounded = {label for metric in METRICS for label in metric.labels} - {
        *("namespace", "job", "state", "axis", "kind", "noticed", "type", "phase"),
        *("horizon_seconds", "quantile", "source", "severity", "zone", "spot", "version"),
    }
    assert unbounded == set()


def test_the_fleet() -> None:
    source = full()
    source.board, source.planner = lambda: False, lambda: None
    tell = Told(scrape(source))
    assert tell("jobs") == 1
    assert (tell("board_up"), tell("planner_up"), tell("api_server_up")) == (0, None, 1)
    assert tell("build_info", version="1.2.3") == 1
    assert tell("nodes", zone="a", spot="true", state="healthy") == 5
    assert tell("nodes", zone="b", spot="false", state="hinted") == 2
    assert tell("scrape_failures") == 0


def test_a_job_that_is_deleted_vanishes() -> None:
    source = Source(looks=[facts, lambda: facts("bert")])
    registry = registry_of(source)
    assert 'job="bert"' in write_text(registry).decode()
    del source.looks[1]
    text = write_text(registry).decode()
    assert "bert" not in text
    assert 'job="gpt"' in text


def test_a_job_of_another_operator_is_not_told() -> None:
    tell = Told(scrape(Source(looks=[lambda: None, facts])))
    assert set(tell.all("plan_revision", "job")) == {("gpt",)}
    assert tell("scrape_failures") == 0


def test_what_fails_takes_nothing_else_with_it(caplog: pytest.LogCaptureFixture) -> None:
    source = Source(
        looks=[broken, facts, broken], groups=broken, board=broken, planner=lambda: True
    )
    registry = registry_of(source)
    with caplog.at_level(logging.ERROR):
        texts = [write_text(registry).decode() for _ in range(3)]
    assert len(caplog.records) == 1  # not at every scrape
    assert 'parcae_plan_revision{namespace="team",job="gpt"} 7.0' in texts[2]
    assert "parcae_planner_up 1.0" in texts[2]
    assert "parcae_board_up" not in texts[2]
    assert "parcae_scrape_failures 4.0" in texts[2]


def test_one_job_of_sixteen_workers_is_small() -> None:
    text = write_text(registry_of(full(), full_meter()))
    assert len(text) < 100_000 / 4


def test_fifty_jobs_are_told_in_no_time() -> None:
    def look(name: str) -> JobFacts:
        return facts(name)

    names = [f"job{k}" for k in range(50)]
    source = Source(looks=[lambda name=name: look(name) for name in names], groups=lambda: NODES)  # type: ignore[misc]
    registry = registry_of(source)
    seconds = []
    for _ in range(15):
        begun_s = time.thread_time()  # whatever else this machine does
        text = write_text(registry)
        seconds.append(time.thread_time() - begun_s)
    assert text.count(b"parcae_plan_revision{") == 50
    assert min(seconds) < 0.05


def test_the_text_is_as_the_client_library_writes_it() -> None:
    tricky = 'a"b\\c\nd'
    jobs = [facts(name, checkpoint_unix_s=None) for name in ("gpt", tricky)]
    source = Source(looks=[lambda job=job: job for job in jobs], groups=lambda: NODES)  # type: ignore[misc]
    source.board = lambda: None
    registry = registry_of(source, full_meter())
    odd = Gauge("parcae_odd", "Odd numbers.", ["of"], registry=registry)
    for value in (math.inf, -math.inf, 1e300, 1e-9, 0.1):
        odd.labels(str(value)).set(value)
    ours, theirs = write_text(registry).decode(), generate_latest(registry).decode()
    assert read(ours) == read(theirs)

    def comments(text: str) -> list[str]:
        lines = [line for line in text.splitlines() if line.startswith("#")]
        return [line for line in lines if "_created" not in line]

    assert comments(ours) == comments(theirs)


# What only the process counts.


def test_planning_questions_are_timed() -> None:
    meter = Meter()
    for seconds in (0.002, 0.2, 20.0):
        meter.planned(seconds)
    tell = Told(scrape(Source(), meter))
    assert tell("plan_seconds_count") == 3
    assert tell("plan_seconds_sum") == pytest.approx(20.202)
    assert tell("plan_seconds_bucket", le="0.3") == 2


def test_nodes_that_come_to_stand_worse_are_counted_by_what_says_so() -> None:
    meter = Meter()
    for severity, source in (
        (Severity.HINT, "aws-rebalance"),
        (Severity.DOOMED, "gce-preempted"),
        (Severity.DOOMED, "gce-preempted"),
        (Severity.DOOMED, "made up by somebody"),
        (Severity.GONE, "and another"),
    ):
        meter.worsened(NodeState(uid="u", severity=severity, source=source))
    assert Told(scrape(Source(), meter)).all("notices_total", "source", "severity") == {
        ("aws-rebalance", "hint"): 1,
        ("gce-preempted", "notice"): 2,
        ("other", "notice"): 1,
        ("other", "gone"): 1,
    }


def test_the_lead_of_a_notice() -> None:
    meter = Meter()
    meter.noticed(notice("sigterm", 25.0))
    meter.noticed(notice("pod-EvictionByEvictionAPI", -3.0))  # it came too late
    meter.noticed(notice("gce-preempted", 30.0))  # its node was counted
    tell = Told(scrape(Source(), meter))
    assert tell("notice_lead_seconds_count") == 3
    assert tell("notice_lead_seconds_sum") == 55.0
    assert tell("notice_lead_seconds_bucket", le="1.0") == 1
    assert tell.all("notices_total", "source", "severity") == {
        ("sigterm", "notice"): 1,
        ("pod-EvictionByEvictionAPI", "notice"): 1,
    }
