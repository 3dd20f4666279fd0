"""``parcae status``: what it reads, and what it says when it cannot."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_objects import Object
from status_objects import TRAINING, body_of, condition

import parcae_cli.status as status_module
from parcae_api.job_status import (
    JobStatus,
    Phase,
)
from parcae_cli.main import main

PATH = "/apis/parcae.dev/v1alpha1/namespaces/team/parcaejobs/gpt"


# What is fetched.


class Server:
    """An API server that gives these answers in turn; the last one stays."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, object]] = []
        self.asked: list[str] = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                many = len(owner.replies) > 1
                status, body = owner.replies.pop(0) if many else owner.replies[0]
                raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def kubeconfig(folder: Path, url: str, **context: str) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", **context}},
            {"name": "there", "context": {"cluster": "c", "user": "u", "namespace": "other"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str
) -> tuple[int, str, str]:
    """Exit code, output, errors."""
    monkeypatch.setattr("sys.argv", ["parcae", "status", *args])
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    code = caught.value.code
    return code if isinstance(code, int) else 0, out, err


def refusal(status: int, reason: str, message: str, **details: str) -> tuple[int, Object]:
    return status, {"kind": "Status", "reason": reason, "message": message, "details": details}


def test_a_job_is_read_and_shown(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.replies = [(200, body_of(TRAINING))]
    config = kubeconfig(tmp_path, server.url)
    code, out, err = run(monkeypatch, capsys, "gpt", "-n", "team", "--kubeconfig", config)
    assert (code, err) == (0, "")
    assert "Training   2×2   revision 7" in out
    assert server.asked == [PATH]


@pytest.mark.parametrize(
    ("context", "args", "namespace"),
    [
        ({}, [], "default"),
        ({"namespace": "team"}, [], "team"),
        ({"namespace": "team"}, ["-n", "x"], "x"),
        ({"namespace": "team"}, ["--context", "there"], "other"),
    ],
)
def test_the_namespace_is_the_users_or_the_contexts(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    context: dict[str, str],
    args: list[str],
    namespace: str,
) -> None:
    server.replies = [(200, body_of(TRAINING))]
    config = kubeconfig(tmp_path, server.url, **context)
    code, _, err = run(monkeypatch, capsys, "gpt", *args, "--kubeconfig", config)
    assert (code, err) == (0, "")
    assert server.asked == [PATH.replace("/team/", f"/{namespace}/")]


def test_as_json_for_programs(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = body_of(TRAINING)
    body["status"]["phase"] = "OfTheFuture"  # programs get it as it is
    server.replies = [(200, body)]
    config = kubeconfig(tmp_path, server.url)
    code, out, _ = run(monkeypatch, capsys, "gpt", "-o", "json", "--kubeconfig", config)
    assert code == 0
    found = json.loads(out)
    assert found["status"] == body["status"]
    assert "managedFields" not in found["metadata"]


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (
            refusal(404, "NotFound", "not found", name="gpt", kind="parcaejobs"),
            2,
            "parcae: gpt: there is no ParcaeJob of that name in namespace team; ",
        ),
        ((404, "404 page not found\n"), 1, "the custom resource definition is not installed"),
        (refusal(404, "NotFound", "the server could not find the resource"), 1, "not installed"),
        (
            refusal(403, "Forbidden", "User x cannot get parcaejobs"),
            1,
            "does not let you read ParcaeJob team/gpt: User x cannot get parcaejobs",
        ),
        (refusal(401, "Unauthorized", "Unauthorized"), 1, "does not let you read"),
        (refusal(500, "InternalError", "etcd is away"), 1, "an error: etcd is away"),
        ((503, "<html>"), 1, "answers with an error: status 503"),
        ((200, "[1]"), 1, "an answer without sense"),
    ],
)
def test_a_failure_is_one_sentence(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reply: tuple[int, object],
    code: int,
    words: str,
) -> None:
    server.replies = [reply]
    config = kubeconfig(tmp_path, server.url)
    found, out, err = run(monkeypatch, capsys, "gpt", "-n", "team", "--kubeconfig", config)
    assert (found, out) == (code, "")
    assert words in err
    assert err.startswith("parcae: ")
    assert err.count("\n") == 1


def test_nobody_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        config = kubeconfig(tmp_path, url)
        code, _, err = run(monkeypatch, capsys, "gpt", "--kubeconfig", config)
    assert code == 1
    assert err.startswith(f"parcae: the API server at {url} does not answer: ")
    assert "refused" in err
    assert "object at" not in err
    assert err.count("\n") == 1


def test_no_such_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = kubeconfig(tmp_path, "https://nowhere.invalid:6443")
    code, _, err = run(monkeypatch, capsys, "gpt", "--kubeconfig", config)
    assert code == 1
    assert "does not answer" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("content", [None, "", "[]", "{", "clusters: 5", "\x00", "contexts: [1]"])
def test_a_kubeconfig_that_cannot_be_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
) -> None:
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    code, _, err = run(monkeypatch, capsys, "gpt", "--kubeconfig", str(path))
    assert code == 2
    assert err.startswith(f"parcae: no cluster: {path} cannot be used (")
    assert err.count("\n") == 1


def test_a_context_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = kubeconfig(tmp_path, "http://127.0.0.1:1")
    args = ("gpt", "--kubeconfig", config, "--context", "elsewhere")
    code, _, err = run(monkeypatch, capsys, *args)
    assert code == 2
    assert "elsewhere" in err


@pytest.mark.parametrize("name", ["", "team/gpt", "a\nb", ".."])
def test_names_that_no_job_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, _, err = run(monkeypatch, capsys, name)
    assert code == 2
    assert err.startswith("parcae: NAME: ")


def test_watching_as_json_is_kubectls(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(monkeypatch, capsys, "gpt", "--watch", "-o", "json")
    assert code == 2
    assert err.startswith("parcae: --watch: ")


# Watching.


def watched(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> tuple[int, str, str]:
    monkeypatch.setattr(status_module, "_EVERY_S", 0.01)
    config = kubeconfig(tmp_path, server.url)
    return run(monkeypatch, capsys, "gpt", "-n", "team", "--watch", "--kubeconfig", config)


def completed() -> JobStatus:
    over = condition("Completed", True, "AllStepsCommitted", "all 5000 steps are committed")
    return TRAINING.model_copy(
        update={"phase": Phase.COMPLETED, "conditions": (over,), "step": 5000}
    )


def test_it_is_watched_until_it_is_over(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.replies = [
        (200, body_of(TRAINING)),
        (500, "{}"),
        (200, body_of(TRAINING)),
        (200, body_of(completed())),
    ]
    code, out, err = watched(server, tmp_path, monkeypatch, capsys)
    assert (code, err) == (0, "")
    assert len(server.asked) == 4
    assert "all 5000 steps are committed" in out
    assert "does not answer" not in out.splitlines()[-1]


def test_a_job_that_is_over_is_not_waited_for(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.replies = [(200, body_of(completed()))]
    code, out, _ = watched(server, tmp_path, monkeypatch, capsys)
    assert code == 0
    assert "Completed" in out
    assert len(server.asked) == 1


def test_a_job_that_is_deleted_while_it_is_watched(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.replies = [(200, body_of(TRAINING)), refusal(404, "NotFound", "gone", name="gpt")]
    code, out, _ = watched(server, tmp_path, monkeypatch, capsys)
    assert code == 0
    assert "it is deleted" in out


def test_the_user_has_seen_enough(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.replies = [(200, body_of(TRAINING))]

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(status_module.time, "sleep", interrupted)
    code, _, err = watched(server, tmp_path, monkeypatch, capsys)
    assert (code, err) == (130, "")
    assert time.sleep is interrupted
