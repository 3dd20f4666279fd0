"""The test's own metadata services speak as the clouds do, also as a program of its own."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from metadata_servers import MetadataServer, azure_event

ROOT = Path(__file__).resolve().parents[2]
GOOGLE = {"Metadata-Flavor": "Google"}
AZURE = {"Metadata": "true"}
PREEMPTED = "/computeMetadata/v1/instance/preempted"
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"


def ask(server: MetadataServer, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.request(method, server.url + path, headers=named, trust_env=False)


def test_aws_wants_a_token() -> None:
    with MetadataServer("aws") as server:
        path = "/latest/meta-data/instance-life-cycle"
        assert ask(server, path).status_code == 401
        assert ask(server, "/latest/api/token").status_code == 405
        assert ask(server, "/latest/api/token", "PUT").status_code == 400
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": "1"}
        proxied = ask(server, "/latest/api/token", "PUT", **ttl, X_Forwarded_For="1.2.3.4")
        assert proxied.status_code == 403
        given = ask(server, "/latest/api/token", "PUT", **ttl)
        assert given.headers["X-aws-ec2-metadata-token-ttl-seconds"] == "1"
        token = {"X-aws-ec2-metadata-token": given.text}
        assert ask(server, path, **token).text == "spot"
        assert ask(server, "/latest/meta-data/spot/instance-action", **token).status_code == 404
        while ask(server, path, **token).status_code == 200:
            pass  # until the second is over
        assert ask(server, path, **token).status_code == 401


def test_gce_wants_its_header_and_holds_back() -> None:
    with MetadataServer("gce") as server:
        assert ask(server, PREEMPTED).status_code == 403
        first = ask(server, PREEMPTED, **GOOGLE)
        assert (first.text, first.headers["Metadata-Flavor"]) == ("FALSE", "Google")
        wait = f"{PREEMPTED}?wait_for_change=true&timeout_sec=0&last_etag="
        same = ask(server, wait + first.headers["ETag"], **GOOGLE)
        assert (same.text, same.headers["ETag"]) == ("FALSE", first.headers["ETag"])
        server.notice()
        wait = f"{PREEMPTED}?wait_for_change=true&last_etag={first.headers['ETag']}"
        assert ask(server, wait, **GOOGLE).text == "TRUE"


def test_azure_checks_header_and_version_and_counts_documents() -> None:
    with MetadataServer("azure") as server:
        assert ask(server, EVENTS).status_code == 400
        assert ask(server, "/metadata/scheduledevents", **AZURE).status_code == 400
        assert ask(server, EVENTS, **AZURE).json() == {"DocumentIncarnation": 1, "Events": []}
        event = azure_event("Preempt", ["m"], 30)
        server.update({"events": [event]})
        assert ask(server, EVENTS, **AZURE).json() == {"DocumentIncarnation": 2, "Events": [event]}
        name = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
        assert ask(server, name, **AZURE).text == "aks-gpu-1-vmss_12"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("x")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def control(path: str, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    connection = _UnixConnection(path)
    connection.request(method, target, json.dumps(body) if body is not None else None)
    response = connection.getresponse()
    found = response.status, json.loads(response.read())
    connection.close()
    return found


def test_as_a_program_with_a_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "control")
    with subprocess.Popen(
        [sys.executable, "-S", "-m", "tests.support.metadata_servers", "gce", "--control", path],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        url = json.loads(program.stdout.readline())["url"]
        assert control(path, "POST", "/notice")[0] == 200
        assert httpx.get(url + PREEMPTED, headers=GOOGLE, trust_env=False).text == "TRUE"
        status, shown = control(path, "GET", "/")
        assert (status, shown["state"]["preempted"]) == (200, "TRUE")
        assert shown["requests"] == [f"GET {PREEMPTED}"]
        control(path, "POST", "/clear")
        control(path, "PUT", "/fault", {"kind": "429", "retry_after": "3", "times": 1})
        busy = httpx.get(url + PREEMPTED, headers=GOOGLE, trust_env=False)
        assert (busy.status_code, busy.headers["Retry-After"]) == (429, "3")
        assert httpx.get(url + PREEMPTED, headers=GOOGLE, trust_env=False).text == "FALSE"
        assert control(path, "PUT", "/state", {"nothing": 1})[0] == 400
        assert control(path, "GET", "/nowhere")[0] == 404
        program.terminate()
        assert program.wait(20) == 0
    assert not Path(path).exists()


@pytest.mark.parametrize("cloud", ["aws", "gce", "azure"])
def test_ends_while_a_caller_hangs(cloud: str) -> None:
    server = MetadataServer(cloud)
    server.fail("hang")
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while server.count("GET") == 0:
            pass
        server.close()
