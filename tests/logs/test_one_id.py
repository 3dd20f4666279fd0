"""One id, a job's revision, in the logs of operator, planner and agents."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from tests.planning.planner_server import serving
from tests.planning.planning_helpers import make_profile

from parcae_api.log_context import about
from parcae_api.log_lines import LogFormat, formatter_of
from parcae_api.planning import PlanRequest
from parcae_optimizer.client import PlannerClient


class Lines(logging.Handler):
    """What is logged, as the cluster would have it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(formatter_of(LogFormat.JSON))
        self.found: list[dict[str, object]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(json.loads(self.format(record)))


@pytest.fixture
def planner_lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("parcae_optimizer")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def request() -> PlanRequest:
    return PlanRequest(profile=make_profile([0.1] * 4), num_workers=4)


def test_the_planner_is_told_and_writes_down_what_it_is_asked_about(planner_lines: Lines) -> None:
    with serving() as url, PlannerClient(url) as client:
        with about(namespace="team", job="gpt", revision=8):
            answer = client.plan(request())
        client.plan(request())  # of nobody knows what, as an older operator asks
    first, second = planner_lines.found
    assert (first["namespace"], first["job"], first["revision"]) == ("team", "gpt", 8)
    assert answer.layout is not None
    assert str(first["message"]).startswith(f"{answer.layout.configuration} for 4 workers, in ")
    assert str(first["message"]).endswith(answer.why)
    assert "revision" not in second
