"""``parcae status``: what it shows, and what it says when it cannot."""

from __future__ import annotations

import http.server
import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_objects import Object, job_body, rfc3339
from rich.console import Console

import parcae_cli.status as status_module
from parcae_api.errors import ParcaeError
from parcae_api.job_status import (
    Condition,
    ConditionType,
    Decision,
    InstanceCounts,
    JobStatus,
    LastMigration,
    Phase,
)
from parcae_cli.main import main
from parcae_cli.status_view import age, read_view, render
from parcae_operator.kube.objects import dump_status

NOW = 1_900_010_000.0
PATH = "/apis/parcae.dev/v1alpha1/namespaces/team/parcaejobs/gpt"


def condition(type_: str, holds: bool, reason: str, message: str = "") -> Condition:
    return Condition(
        type=ConditionType(type_),
        status="True" if holds else "False",
        reason=reason,
        message=message,
        last_transition_time=rfc3339(NOW - 180),
    )


TRAINING = JobStatus(
    observed_generation=1,
    phase=Phase.TRAINING,
    conditions=(
        condition("Ready", True, "Training", "trains as 2x2"),
        condition("Degraded", True, "PlannerUnavailable", "plans are reactive"),
        condition("Suspended", False, "NotSuspended"),
    ),
    configuration="2x2",
    revision=7,
    step=1234,
    total_steps=5000,
    samples=39488,
    instance_counts=InstanceCounts(training=4, standby=1, pending=2),
    throughput_samples_per_second=123.45,
    liveput_samples_per_second=99.9,
    preemptions=5,
    preemptions_noticed=3,
    migrations=6,
    last_migration=LastMigration(
        time=rfc3339(NOW - 300),
        revision=7,
        kind="inter_stage",
        pause_seconds=0.42,
        bytes_moved=12_300_000,
        steps_replayed=1,
    ),
    decisions=(
        Decision(
            time=rfc3339(NOW - 301),
            revision=7,
            reason="loss",
            configuration="2x2",
            why="2x2 is the best of 4 instances",
        ),
        Decision(
            time=rfc3339(NOW - 7300),
            revision=6,
            reason="suspend",
            configuration="paused",
            why="spec.suspend is true",
        ),
    ),
    start_time=rfc3339(NOW - 4 * 86_400),
)


def body_of(status: JobStatus | None, **metadata: Any) -> Object:
    body = job_body()
    body["metadata"].update(metadata)
    if status is not None:
        body["status"] = {k: v for k, v in dump_status(status).items() if v is not None}
    return body


def shown(body: Object, width: int = 120) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False)
    console.print(render(read_view(body), NOW))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


# What is shown.


def test_a_job_at_a_glance() -> None:
    assert shown(body_of(TRAINING)) == (
        "gpt  team   Training   2×2   revision 7\n"
        "\n"
        "step         1,234 of 5,000  ━━━━━━━                         24.7 %\n"
        "samples      39,488 committed\n"
        "speed        123.5 samples/s now; 99.9 expected under preemptions\n"
        "instances    4 training, 1 standby, 2 pending\n"
        "preemptions  5 lost, 3 of them after a notice\n"
        "migrations   6; the last one 5 min ago: revision 7, inter-stage, paused 0.42 s, "
        "12.3 MB moved, 1 step "
        "replayed\n"
        "started      4 d ago\n"
        "\n"
        "condition         since  reason              message\n"
        "Ready      True   3 min  Training            trains as 2x2\n"
        "Degraded   True   3 min  PlannerUnavailable  plans are reactive\n"
        "Suspended  False  3 min  NotSuspended\n"
        "\n"
        "decided    revision  answers  layout  why\n"
        "5 min ago         7  loss     2×2     2x2 is the best of 4 instances\n"
        "2 h ago           6  suspend  paused  spec.suspend is true"
    )


def test_a_job_that_no_operator_has_seen() -> None:
    text = shown(body_of(None))
    assert text.splitlines() == [
        "gpt  team   Pending",
        "no operator has written a status yet; is one running?",
    ]


def test_an_edit_that_is_not_acted_on() -> None:
    assert "newest edit" in shown(body_of(TRAINING, generation=2))
    assert "newest edit" not in shown(body_of(TRAINING, generation=1))


def test_a_job_that_is_being_deleted() -> None:
    assert "is being deleted" in shown(body_of(TRAINING, deletionTimestamp=rfc3339(NOW)))


def test_before_the_users_code_is_loaded_there_is_no_bar() -> None:
    status = TRAINING.model_copy(update={"total_steps": 0, "step": 0, "last_migration": None})
    text = shown(body_of(status))
    assert "%" not in text
    assert "migrations   6\n" in text


def test_more_steps_than_all_do_not_break_the_bar() -> None:
    assert "100.0 %" in shown(body_of(TRAINING.model_copy(update={"step": 6000})))


def test_a_job_that_is_over() -> None:
    status = TRAINING.model_copy(
        update={
            "phase": Phase.FAILED,
            "conditions": (condition("Failed", True, "UserCodeFailed", "ValueError: boom"),),
            "completion_time": rfc3339(NOW - 50),
            "failures": 2,
            "instance_counts": InstanceCounts(),
        }
    )
    text = shown(body_of(status))
    assert "over         50 s ago" in text
    assert "2 crashes of the user's code" in text
    assert "instances    none" in text


def test_messages_are_text_not_commands() -> None:
    evil = "\x1b]0;owned\x07 [bold red]loud[/] \x1b[2J\r\nnext"
    status = TRAINING.model_copy(update={"conditions": (condition("Ready", True, "X", evil),)})
    text = shown(body_of(status))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold red]loud[/]" in text


def test_a_long_reason_is_wrapped_and_nothing_else_is() -> None:
    decision = TRAINING.decisions[0].model_copy(update={"why": "word " * 60})
    text = shown(body_of(TRAINING.model_copy(update={"decisions": (decision,)})), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("word") == 60
    assert "5 min ago         7  loss     2×2     word" in text


def test_a_status_of_another_version_is_no_crash() -> None:
    body = body_of(TRAINING)
    body["status"]["phase"] = "Dreaming"
    with pytest.raises(ParcaeError, match=r"gpt: its status is of another version.*-o json"):
        read_view(body)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5000, "83 min"),
        (7200, "2 h"),
        (864_000, "10 d"),
        (-5, "0 s"),
    ],
)
def test_ages(seconds: float, text: str) -> None:
    assert age(rfc3339(NOW - seconds), NOW) == text


@settings(max_examples=60)
@given(
    st.builds(
        JobStatus,
        step=st.integers(0, 10**12),
        total_steps=st.integers(0, 10**12),
        configuration=st.text(max_size=64),
        start_time=st.text(max_size=32),
        throughput_samples_per_second=st.floats(),
        conditions=st.lists(
            st.builds(
                Condition,
                type=st.sampled_from(ConditionType),
                status=st.sampled_from(["True", "False", "Unknown"]),
                reason=st.text(max_size=20),
                message=st.text(max_size=200),
                last_transition_time=st.text(max_size=32),
            ),
            max_size=4,
        ).map(tuple),
    ),
    st.integers(20, 200),
)
def test_whatever_a_status_holds_it_is_shown(status: JobStatus, width: int) -> None:
    body = job_body()
    body["status"] = dump_status(status)
    assert shown(body, width)


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
