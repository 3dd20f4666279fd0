"""The planner that is timed, and the server."""

from __future__ import annotations

import http.client
import itertools
import socket

import pytest
from metric_facts import Source, facts, read, registry_of

from parcae_api.errors import PlannerUnavailable
from parcae_api.history import History
from parcae_api.planning import PlanAnswer, PlanRequest
from parcae_api.profile import LayerProfile, Profile
from parcae_operator.metrics.planner import MeteredPlanner
from parcae_operator.metrics.server import MetricsServer

REQUEST = PlanRequest(
    profile=Profile(
        layers=(LayerProfile(name="a", param_bytes=1, state_bytes=3, activation_bytes=1),),
        num_micro_batches=1,
        micro_batch_samples=1,
        total_steps=1,
    ),
    num_workers=1,
)


class Oracle:
    """Answers, or fails."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def plan(self, request: PlanRequest) -> PlanAnswer:
        if self.error is not None:
            raise self.error
        return PlanAnswer(layout=None, why="a test")


def test_a_question_is_timed_and_its_answer_kept() -> None:
    oracle, seconds = Oracle(), list[float]()
    ticks = itertools.count(10.0, 2.5)
    planner = MeteredPlanner(oracle, seconds.append, clock=lambda: next(ticks))
    assert planner.newest is None
    planner.plan(REQUEST)
    assert planner.newest is None  # about what could be: no forecast of what is there
    answer = planner.plan(REQUEST.model_copy(update={"history": History(interval_s=60)}))
    assert planner.newest is answer
    oracle.error = PlannerUnavailable("away")
    with pytest.raises(PlannerUnavailable):
        planner.plan(REQUEST)
    assert seconds == [2.5, 2.5, 2.5]
    assert planner.newest is answer


def ask(port: int, path: str = "/metrics") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("Content-Type", ""), text


def test_the_server_answers() -> None:
    server = MetricsServer(registry_of(Source(looks=[facts])), 0, "127.0.0.1")
    try:
        status, kind, text = ask(server.port)
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert read(text)["parcae_jobs", frozenset()] == 1
        assert ask(server.port, "/elsewhere")[0] == 404
    finally:
        server.close()
    with pytest.raises(ConnectionError):
        ask(server.port)


def test_a_client_that_says_nothing_holds_nobody_up() -> None:
    server = MetricsServer(registry_of(Source()), 0, "127.0.0.1")
    try:
        with socket.create_connection(("127.0.0.1", server.port)):
            assert ask(server.port)[0] == 200
    finally:
        server.close()


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        MetricsServer(registry_of(Source()), taken.getsockname()[1], "127.0.0.1")
