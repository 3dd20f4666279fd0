"""What one agent tells: its catalog, its page, and the text made from both."""

from __future__ import annotations

import gzip
import math
import os
import socket
import subprocess
import sys
import time
from typing import Any
from urllib.request import Request, urlopen

import pytest
from metric_facts import Told, read

from parcae_agent.metrics.answer import AgentFacts, Build, answer
from parcae_agent.metrics.catalog import AGENT_METRICS, STEP_BUCKETS_S
from parcae_agent.metrics.meter import Meter, StepParts
from parcae_agent.metrics.page import Page, Slot, new_page
from parcae_agent.metrics.telling import Telling, resident_bytes
from parcae_agent.settings import metrics_port
from parcae_api.errors import InputError
from parcae_api.membership import AgentState
from parcae_api.metric import Kind
from parcae_api.scrape_server import _takes_gzip

PARTS = StepParts(data=0.01, compute=0.04, pipeline=0.02, reduce=0.01, vote=0.005, apply=0.005)


def agent_facts(**changes: Any) -> AgentFacts:
    given: dict[str, Any] = {
        "namespace": "team",
        "job": "gpt",
        "state": AgentState.TRAINING,
        "plan_revision": 7,
        "deadline_unix_s": 1030.0,
        "has_hint": True,
        "board_up": True,
        "unsent_writes": 2,
        "silent_s": 0.5,
        "host_bytes": 5_000_000,
        **changes,
    }
    return AgentFacts(**given)


def busy_page() -> Page:
    """Of a worker that has done everything at least once."""
    page = Page.of(None)
    meter = Meter(page)
    meter.moved(sent=300, received=100)
    meter.formed(7, (1, 2), 0.25, 1.5)
    meter.holds(step=20, layers=4, state_bytes=4096)
    meter.device(allocated=10, reserved=20)
    for step in (21, 22, 23):
        stepped(meter, step, 0.1)
    meter.saved(20, 4096, 0.75)
    meter.not_saved()
    meter.broke()
    return page


def stepped(meter: Meter, step: int, seconds: float) -> None:
    meter.stepped(step, seconds=seconds, parts=PARTS, samples=8, tokens=512, loss=2.5, norm=0.5)


def text_of(page: Page, **changes: Any) -> str:
    return answer(
        agent_facts(**changes), page.read(), Build("1.2.3", "2.13.0"), now_unix_s=1000.0
    ).decode()


def told_of(page: Page, **changes: Any) -> Told:
    return Told(read(text_of(page, **changes)))


def test_the_answer_is_what_the_catalog_says() -> None:
    suffixes = {Kind.SUMMARY: ["_sum", "_count"], Kind.HISTOGRAM: ["_sum", "_count", "_bucket"]}
    expected = {
        metric.name + suffix: {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
        for metric in AGENT_METRICS
        for suffix in suffixes.get(metric.kind, [""])
    }
    samples = read(text_of(busy_page()))
    assert {name: {label for label, _ in labels} for name, labels in samples} == expected


def test_no_label_but_those_that_are_bounded() -> None:
    labels = {label for metric in AGENT_METRICS for label in metric.labels}
    bounded = {"namespace", "job", "version", "torch", "state", "kind", "part"}
    assert labels == {*bounded, "outcome", "direction"}


def test_what_the_worker_wrote_is_told() -> None:
    tell = told_of(busy_page())
    assert tell("worker_steps_total", namespace="team", job="gpt") == 3
    assert tell("worker_samples_total") == 24
    assert tell("worker_tokens_total") == 3 * 512
    assert tell("worker_step") == 23
    assert (tell("worker_loss"), tell("worker_gradient_norm")) == (2.5, 0.5)
    assert (tell("worker_revision"), tell("worker_replica"), tell("worker_stage")) == (7, 1, 2)
    assert (tell("worker_layers"), tell("worker_state_bytes")) == (4, 4096)
    assert tell.all("worker_memory_bytes", "kind") == {
        ("host",): 5_000_000,
        ("device_allocated",): 10,
        ("device_reserved",): 20,
    }
    assert tell.all("worker_migration_bytes_total", "direction") == {
        ("sent",): 300,
        ("received",): 100,
    }
    assert tell.all("worker_epochs_total", "outcome") == {("formed",): 1, ("broken",): 1}
    assert (tell("worker_regroup_seconds_sum"), tell("worker_regroup_seconds_count")) == (0.25, 1)
    assert (tell("worker_pause_seconds_sum"), tell("worker_pause_seconds_count")) == (1.5, 1)
    assert tell("worker_checkpoint_seconds_sum") == 0.75
    assert tell("worker_checkpoint_bytes_total") == 4096
    assert tell("worker_checkpoint_failures_total") == 1
    assert tell("worker_checkpoint_step") == 20


def test_what_the_supervisor_knows_is_told() -> None:
    tell = told_of(busy_page())
    assert tell("agent_build_info", version="1.2.3", torch="2.13.0") == 1
    assert {k: v for k, v in tell.all("agent_state", "state").items() if v} == {("training",): 1}
    assert len(tell.all("agent_state", "state")) == len(AgentState)
    assert tell("agent_plan_revision") == 7
    assert (tell("agent_notice"), tell("agent_notice_deadline_seconds")) == (1, 30)
    assert (tell("agent_hint"), tell("agent_board_up"), tell("agent_unsent_writes")) == (1, 1, 2)
    assert tell("agent_worker_silent_seconds") == 0.5


def test_the_parts_of_a_step_are_all_of_it() -> None:
    tell = told_of(busy_page())
    parts = tell.all("worker_step_part_seconds_total", "part")
    assert sum(parts.values()) == pytest.approx(tell("worker_step_seconds_sum"))
    assert parts[("other",)] == pytest.approx(3 * (0.1 - PARTS.total))
    assert parts[("compute",)] == pytest.approx(0.12)


def test_a_worker_that_has_done_nothing() -> None:
    tell = told_of(Page.of(None), deadline_unix_s=None, host_bytes=None)
    for name in (
        *("worker_loss", "worker_replica", "worker_stage", "worker_checkpoint_step"),
        *("worker_memory_bytes", "agent_notice_deadline_seconds"),
    ):
        assert tell(name) is None, name
    assert (tell("worker_revision"), tell("agent_notice")) == (0, 0)
    # Counters are there from 0 on: one that appears with a 1 tells no increase.
    assert tell("worker_steps_total") == tell("worker_step_seconds_count") == 0


def test_a_worker_outside_the_grid_has_no_place() -> None:
    page = busy_page()
    Meter(page).left()
    tell = told_of(page)
    assert tell("worker_replica") is tell("worker_stage") is None
    assert tell("worker_revision") == 0
    assert tell("worker_steps_total") == 3


def test_a_donors_part_ends_as_it_forms() -> None:
    page = Page.of(None)
    Meter(page).formed(7, None, 0.25, None)
    tell = told_of(page)
    assert tell("worker_regroup_seconds_count") == 1
    assert (tell("worker_revision"), tell("worker_pause_seconds_count")) == (0, 0)


@pytest.mark.parametrize(
    ("seconds", "bound"), [(0.0, "0.01"), (0.01, "0.01"), (0.0101, "0.03"), (60.0, "60")]
)
def test_a_step_falls_into_the_buckets_from_its_time_on(seconds: float, bound: str) -> None:
    page = Page.of(None)
    stepped(Meter(page), 1, seconds)
    found = told_of(page).all("worker_step_seconds_bucket", "le")
    assert {le for (le,), count in found.items() if count} == {
        *(f"{each:g}" for each in STEP_BUCKETS_S if each >= float(bound)),
        "+Inf",
    }


def test_a_step_beyond_all_bounds_is_counted() -> None:
    page = Page.of(None)
    stepped(Meter(page), 1, 1000.0)
    tell = told_of(page)
    assert (tell("worker_step_seconds_bucket", le="60"), tell("worker_step_seconds_count")) == (
        0,
        1,
    )


def test_one_agent_is_small() -> None:
    assert len(text_of(busy_page())) < 10_000


# The page.


def test_what_a_process_writes_its_parent_reads_also_when_it_is_gone() -> None:
    descriptor = new_page()
    page = Page(descriptor)
    assert math.isnan(page.read()[Slot.LOSS])
    code = (
        "import os, signal, sys; from parcae_agent.metrics.meter import Meter;"
        "from parcae_agent.metrics.page import Page;"
        "Meter(Page(int(sys.argv[1]))).holds(step=41, layers=2, state_bytes=3);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(descriptor)], pass_fds=[descriptor], check=False
    )
    os.close(descriptor)
    assert ended.returncode == -9
    assert page.read()[Slot.STEP] == 41


def test_every_number_has_a_place_of_its_own() -> None:
    page = Page.of(None)
    for slot in Slot:
        page.values[slot] = 1000 + slot
    assert page.read()[: len(Slot)] == [1000 + slot for slot in Slot]
    assert sum(page.read()[len(Slot) :]) == 0


# The port.


def telling(page: Page, port: int | None) -> Telling:
    return Telling(page, agent_facts, port, "127.0.0.1")


def test_it_answers_over_http() -> None:
    page = busy_page()
    tells = telling(page, 0)
    try:
        with urlopen(f"http://127.0.0.1:{tells.port}/metrics", timeout=10) as reply:
            assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            first = Told(read(reply.read().decode()))
        stepped(Meter(page), 24, 0.1)
        with urlopen(f"http://127.0.0.1:{tells.port}/metrics", timeout=10) as reply:
            second = Told(read(reply.read().decode()))
    finally:
        tells.close()
    assert (first("worker_steps_total"), second("worker_steps_total")) == (3, 4)
    left_s = first("agent_notice_deadline_seconds")
    assert left_s == pytest.approx(1030 - time.time(), abs=60)


def test_sixteen_agents_are_small_as_prometheus_asks() -> None:
    tells = telling(busy_page(), 0)
    asked = Request(f"http://127.0.0.1:{tells.port}/metrics", headers={"Accept-Encoding": "gzip"})
    try:
        with urlopen(asked, timeout=10) as reply:
            assert reply.headers["Content-Encoding"] == "gzip"
            body = reply.read()
    finally:
        tells.close()
    assert len(body) < 100_000 / 16 / 2
    assert Told(read(gzip.decompress(body).decode()))("worker_steps_total") == 3


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [("gzip", True), ("deflate, gzip;q=0.5", True), ("gzip;q=0", False), ("", False), ("*", False)],
)
def test_only_who_asks_for_it_gets_it_packed(accepted: str, takes: bool) -> None:
    assert _takes_gzip(accepted) == takes


def test_a_port_that_is_taken_costs_the_metrics_alone(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        tells = telling(busy_page(), port)
    assert tells.port is None
    assert f"port {port} cannot be had" in caplog.text
    assert "PARCAE_METRICS_PORT" in caplog.text
    tells.close()


def test_without_a_port_nobody_is_told() -> None:
    tells = telling(busy_page(), None)
    assert tells.port is None
    tells.close()


@pytest.mark.parametrize(
    ("given", "port"), [({}, 8082), ("", 8082), ("9000", 9000), ("0", None), ("65535", 65_535)]
)
def test_the_port_is_the_environments(given: Any, port: int | None) -> None:
    environ = {} if given == {} else {"PARCAE_METRICS_PORT": given}
    assert metrics_port(environ) == port


@pytest.mark.parametrize("given", ["http", "65536", "-1", "8082 ", "1" * 400])
def test_what_is_no_port_is_refused(given: str) -> None:
    with pytest.raises(InputError, match=r"^PARCAE_METRICS_PORT: is ") as caught:
        metrics_port({"PARCAE_METRICS_PORT": given})
    assert len(str(caught.value)) < 200


def test_the_memory_of_a_process() -> None:
    own = resident_bytes(os.getpid())
    assert own is not None
    assert 1_000_000 < own < 100_000_000_000
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert resident_bytes(ended.pid) is None
