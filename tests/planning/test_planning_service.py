"""The planner over HTTP: its contract, its errors, its client, on a real socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from planner_server import serving
from planning_helpers import make_profile
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from parcae_api.errors import InputError, PlannerUnavailable
from parcae_api.planning import ForecastRequest, PlanRequest
from parcae_optimizer.client import PlannerClient
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.service import MOST_BODY_BYTES, make_app
from parcae_predictor import predictor_of

schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(predictor_of("hazard")))


@schema.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_the_contract_holds(case: schemathesis.Case) -> None:
    # Which fields must agree with each other no schema can say: a valid request may be refused.
    case.call_and_validate(
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ]
    )


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving() as address:
        yield address


def request(workers: int = 4) -> PlanRequest:
    return PlanRequest(profile=make_profile([0.1] * 4), num_workers=workers)


def test_the_client_gets_what_the_planner_says(url: str) -> None:
    with PlannerClient(url) as client:
        assert client.plan(request()) == LiveputPlanner(predictor_of("hazard")).plan(request())
        expected = client.forecast(ForecastRequest(num_workers=4, capacity=8, horizon=5))
        assert len(expected.mean) == 5
        assert client.plan(request(0)).layout is None


def test_a_wrong_field_is_named(url: str) -> None:
    told = json.loads(request().to_json())
    told["profile"]["layers"][2]["seconds"] = -1
    answer = httpx.post(f"{url}/v1/plan", json=told)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "profile", "layers", 2, "seconds"]
    told = {**json.loads(request().to_json()), "horizon": 0}
    answer = httpx.post(f"{url}/v1/plan", json=told)
    assert answer.json()["detail"][0]["loc"] == ["body", "horizon"]


def test_the_client_says_what_the_service_refuses(url: str) -> None:
    with (
        PlannerClient(url) as client,
        pytest.raises(InputError, match=r"horizon: .*greater than or equal to 1"),
    ):
        client.plan(request().model_copy(update={"horizon": 0}))


def test_a_huge_body_is_refused_unread(url: str) -> None:
    answer = httpx.post(f"{url}/v1/plan", content=b"[" * (MOST_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert f"send at most {MOST_BODY_BYTES}" in answer.text


def test_a_body_of_untold_length_is_refused_unread(url: str) -> None:
    answer = httpx.post(f"{url}/v1/plan", content=iter([b"[", b"]"]))
    assert answer.status_code == 411
    assert "send content-length" in answer.text


def test_health_and_metrics(url: str) -> None:
    assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
    httpx.post(f"{url}/v1/plan", content=request().to_json())
    text = httpx.get(f"{url}/metrics").text
    assert 'parcae_planner_seconds_count{kind="plan"}' in text


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "http://{}:{}".format(*closed.getsockname())
    with PlannerClient(address) as client, pytest.raises(PlannerUnavailable, match=address):
        client.plan(request())


def test_somebody_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = "http://{}:{}".format(*mute.getsockname())
        client = PlannerClient(address, timeout_s=0.2)
        with client, pytest.raises(PlannerUnavailable, match="timed out"):
            client.plan(request())


def test_somebody_else_answers(url: str) -> None:
    client = PlannerClient(f"{url}/nowhere")
    with client, pytest.raises(PlannerUnavailable, match="answered 404"):
        client.plan(request())


@pytest.mark.parametrize("text", ["", "planner", "planner:8080", "ftp://planner"])
def test_no_url(text: str) -> None:
    with pytest.raises(InputError, match=r"give http://host:port"):
        PlannerClient(text)
