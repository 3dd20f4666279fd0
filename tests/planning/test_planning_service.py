"""The planner over HTTP: its contract, its errors, its client, on a real socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from planner_server import serving
from planning_helpers import make_profile
from prometheus_client.parser import text_string_to_metric_families
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from parcae_api.errors import InputError, PlannerUnavailable
from parcae_api.planning import ForecastRequest, PlanAnswer, PlanRequest
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


JSON = {"content-type": "application/json"}


def test_a_wrong_field_is_named(url: str) -> None:
    told = json.loads(request().to_json())
    told["profile"]["layers"][2]["seconds"] = -1
    answer = httpx.post(f"{url}/v1/plan", json=told)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "profile", "layers", 2, "seconds"]
    told = {**json.loads(request().to_json()), "horizon": 0}
    answer = httpx.post(f"{url}/v1/plan", json=told)
    assert answer.json()["detail"][0]["loc"] == ["body", "horizon"]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("num_workers", "NaN", "finite number, but it is nan"),
        ("num_workers", "-Infinity", "finite number, but it is -inf"),
        ("rollback_seconds", "NaN", "but it is nan"),
        ("horizon", "1e400", "finite number, but it is inf"),
        ("unheard", "[NaN]", "is not a known field; remove it"),
        ("seed", '"\\ud800"', "Input should be a valid"),
        ("seed", "1" * 400, "less than 2147483648, but it is 1111"),
        ("capacity", "3", "capacity (3) is below num_workers (4); give at least as many"),
    ],
)
def test_whatever_a_field_holds_it_is_named(url: str, field: str, value: str, says: str) -> None:
    told = {**json.loads(request().to_json()), field: "HERE"}
    answer = httpx.post(
        f"{url}/v1/plan", content=json.dumps(told).replace('"HERE"', value), headers=JSON
    )
    (problem,) = answer.json()["detail"]
    assert answer.status_code == 422
    assert problem["loc"] == (["body"] if field == "capacity" else ["body", field])
    assert says in problem["msg"]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ("", 422, "is required; add it"),
        ("null", 422, "but it is None"),
        ("{", 422, "is no JSON at character 1: Expecting property name"),
        ("[" * 100_000, 400, "nest it less deep"),
        ("1" * 10_000, 400, "write shorter numbers"),
        (b'{"a": "\xff\xfe"}', 400, "send UTF-8"),
        ('{"\\ud800": 1}', 422, "Input should be a valid string"),
    ],
)
def test_whatever_the_body_is_one_sentence_says_what_is_wrong(
    url: str, body: str | bytes, status: int, says: str
) -> None:
    answer = httpx.post(f"{url}/v1/plan", content=body, headers=JSON)
    assert answer.status_code == status
    assert any(says in problem["msg"] for problem in answer.json()["detail"])


def test_memory_beyond_measure_is_memory_enough(url: str) -> None:
    told = json.loads(request().to_json()) | {"worker_memory_bytes": int("9" * 400)}
    answer = httpx.post(f"{url}/v1/plan", json=told)
    assert answer.status_code == 200
    assert answer.json()["layout"] is not None


def test_a_refusal_is_short_whatever_was_sent(url: str) -> None:
    told = json.loads(request().to_json())
    told |= {f"k{i}": "x" * 100 for i in range(10_000)}
    told["y" * 10_000] = "z" * 1_000_000
    answer = httpx.post(f"{url}/v1/plan", json=told)
    assert answer.status_code == 422
    assert len(answer.content) < 3000


def test_another_content_type_is_named(url: str) -> None:
    header = {"content-type": "text/plain"}
    answer = httpx.post(f"{url}/v1/plan", content=request().to_json(), headers=header)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["msg"] == (
        "is text/plain; send it as content-type application/json"
    )


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


def test_health(url: str) -> None:
    assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
    with PlannerClient(url) as client:
        assert client.is_up()
    with PlannerClient(f"{url}/nowhere") as client:
        assert not client.is_up()


CLOSE = {"connection": "close"}
"""After a fault the server closes the connection, with whatever is asked on it meanwhile."""


class Faulty:
    """Fails."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        raise RuntimeError("a mistake in this program")


def metrics(client: httpx.Client) -> dict[str, float]:
    """Samples by name and values of labels."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        " ".join([s.name, *(s.labels[k] for k in sorted(s.labels))]): s.value
        for family in families
        for s in family.samples
    }


def test_requests_are_counted_by_outcome_and_timed() -> None:
    with serving() as address, httpx.Client(base_url=address, headers=CLOSE) as client:
        before = metrics(client)
        assert before["parcae_planner_requests_total plan answered"] == 0
        for _ in range(2):
            assert client.post("/v1/plan", json=json.loads(request().to_json())).status_code == 200
        client.post("/v1/plan", json={})
        client.post("/v1/plan", content=b"[" * (MOST_BODY_BYTES + 1))
        client.post("/v1/forecast", json={"num_workers": 1})
        client.get("/v1/nothing")
        after = metrics(client)
    outcomes = {k: v for k, v in after.items() if k.startswith("parcae_planner_requests_total")}
    assert outcomes == {
        "parcae_planner_requests_total plan answered": 2,
        "parcae_planner_requests_total plan refused": 2,
        "parcae_planner_requests_total plan failed": 0,
        "parcae_planner_requests_total forecast answered": 1,
        "parcae_planner_requests_total forecast refused": 0,
        "parcae_planner_requests_total forecast failed": 0,
    }
    assert after["parcae_planner_seconds_count plan"] == 2
    assert after["parcae_planner_waiting_seconds_count plan"] == 2
    assert 0 < after["parcae_planner_seconds_sum plan"] < 10


def test_a_fault_of_the_planner_is_counted_as_such() -> None:
    with serving(Faulty()) as address, httpx.Client(base_url=address, headers=CLOSE) as client:
        assert client.post("/v1/plan", json=json.loads(request().to_json())).status_code == 500
        assert metrics(client)["parcae_planner_requests_total plan failed"] == 1


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = "http://{}:{}".format(*closed.getsockname())
    with PlannerClient(address) as client, pytest.raises(PlannerUnavailable, match=address):
        client.plan(request())


def test_a_connection_that_breaks_at_its_next_use_is_no_outage() -> None:
    """As one does that the server closes for idleness when the next question is on its way."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        used: list[int] = []

        def answer_once_each() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    used.append(0)
                    while connection.recv(65536):
                        used[-1] += 1
                        if used[-1] > 1:
                            break  # the second question on one connection finds it closing
                        connection.sendall(answer)

        server = threading.Thread(target=answer_once_each)
        server.start()
        with PlannerClient(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            assert [client.is_up() for _ in range(4)] == [True] * 4
        listener.shutdown(socket.SHUT_RDWR)
        server.join()
    assert used[0] == 2


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
