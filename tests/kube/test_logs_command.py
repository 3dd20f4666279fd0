"""``parcae logs`` on an API server: whom it asks, what it shows, what it leaves out."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from kube_objects import Object, rfc3339
from status_objects import TRAINING, body_of

from parcae_cli.main import main

PODS = "/api/v1/namespaces/team/pods"
ALL_PODS = "/api/v1/pods"
EVENTS = "/api/v1/namespaces/team/events"
JOB = "/apis/parcae.dev/v1alpha1/namespaces/team/parcaejobs/gpt"
BEGUN = time.time() - 100.0
UID = "uid-of-gpt"


def stamp(at_s: float) -> str:
    return datetime.fromtimestamp(BEGUN + at_s, UTC).isoformat(timespec="milliseconds")


def log_line(at_s: float, logger: str, message: str, **fields: Any) -> str:
    told = {"time": stamp(at_s), "level": "info", "logger": logger, "message": message, **fields}
    return json.dumps(told) + "\n"


def event(at_s: float, reason: str, note: str, uid: str = UID) -> Object:
    return {
        "metadata": {"name": "e"},
        "eventTime": stamp(at_s),
        "reason": reason,
        "message": note,
        "type": "Normal",
        "involvedObject": {"kind": "ParcaeJob", "name": "gpt", "uid": uid},
    }


def pod(name: str, namespace: str = "team", **labels: str) -> Object:
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {"kubectl.kubernetes.io/default-container": "agent"},
        },
        "spec": {"containers": [{"name": "agent"}]},
        "status": {"phase": "Running"},
    }


def agent(name: str, uid: str = UID) -> Object:
    return pod(name, **{"parcae.dev/job": "gpt", "parcae.dev/job-uid": uid})


def program(name: str, component: str) -> Object:
    return pod(name, "infra", **{"app.kubernetes.io/component": component})


def refusal(status: int, message: str) -> tuple[int, Object]:
    return status, {"kind": "Status", "reason": "Forbidden", "message": message}


ABOUT = {"namespace": "team", "job": "gpt", "revision": 2}
OTHER = {"namespace": "team", "job": "other", "revision": 2}


def with_times(text: str) -> str:
    """As a kubelet gives them, to the nanosecond; a line may ask for one, as in @0.5."""
    lines = []
    for each in text.splitlines():
        found = re.search(r"@([\d.]+)", each)
        at_s = float(found[1]) if found else 0.0
        lines.append(f"{stamp(at_s)[:-6]}000000Z {each}\n")
    return "".join(lines)


class Server:
    """An API server with one change of plan behind it. Replies by path."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.replies: dict[str, tuple[int, object]] = {
            JOB: (200, body_of(TRAINING)),
            PODS: (200, {"items": [agent("gpt-a"), agent("gpt-b"), agent("gpt-old", "another")]}),
            EVENTS: (
                200,
                {
                    "items": [
                        event(0.0, "InstanceNoticed", "the instance of gpt-z-0123abcd on n goes"),
                        event(0.3, "Planned", "revision 2 1x2 (notice): why"),
                        event(0.9, "Migrated", "revision 2 formed at step 5"),
                        event(2.0, "InstanceLost", "the instance of gpt-z-0123abcd on n is lost"),
                        event(-50.0, "Planned", "revision 2 of a job before", uid="another"),
                    ]
                },
            ),
            ALL_PODS: (200, {"items": [program("op-1", "operator"), program("pl-1", "planner")]}),
            f"{PODS}/gpt-a/log": (
                200,
                "step 5 loss 2.5\n"
                + log_line(-90.0, "parcae_agent.worker", "formed long before", revision=1)
                + log_line(0.7, "parcae_agent.worker", "a formed", revision=2),
            ),
            f"{PODS}/gpt-b/log": (
                200,
                log_line(0.5, "parcae_agent.supervisor", "b plan", revision=2)
                + log_line(0.8, "parcae_agent.worker", "b formed", revision=2),
            ),
            "/api/v1/namespaces/infra/pods/op-1/log": (
                200,
                log_line(0.2, "parcae_operator.loop", "plan published", **ABOUT)
                + log_line(0.2, "parcae_operator.loop", "not of this job", **OTHER),
            ),
            "/api/v1/namespaces/infra/pods/pl-1/log": (
                200,
                log_line(0.1, "parcae_optimizer.logged", "1x2 for 2 workers", **ABOUT),
            ),
        }
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                path = urlsplit(self.path).path
                status, body = owner.replies.get(path, refusal(404, f"no {path}"))
                if "timestamps" in self.path and status == 200:
                    body = with_times(str(body))
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

    def query(self, path: str) -> dict[str, list[str]]:
        """Of the newest question to a path."""
        (*_, newest) = [each for each in self.asked if urlsplit(each).path == path]
        return parse_qs(urlsplit(newest).query)

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


class Command:
    """Runs ``parcae logs`` against a server."""

    def __init__(
        self, url: str, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        config = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        self._config = folder / "kubeconfig"
        self._config.write_text(yaml.safe_dump(config))
        self._patch, self._capture = patch, capture

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output, errors."""
        words = ("logs", *words, "-n", "team", "--kubeconfig", str(self._config))
        self._patch.setattr("sys.argv", ["parcae", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = self._capture.readouterr()
        code = caught.value.code
        return code if isinstance(code, int) else 0, out, err


@pytest.fixture
def command(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    return Command(server.url, tmp_path, monkeypatch, capsys)


def messages(out: str) -> list[str]:
    """Without the day, times and names."""
    return [text.split(maxsplit=2)[2] for text in out.splitlines()[1:]]


STORY = [
    "InstanceNoticed: the instance of gpt-z-0123abcd on n goes",
    "1x2 for 2 workers",
    "plan published",
    "Planned: revision 2 1x2 (notice): why",
    "b plan",
    "a formed",
    "b formed",
    "Migrated: revision 2 formed at step 5",
]


def test_one_revision_in_order(server: Server, command: Command) -> None:
    code, out, err = command("gpt", "--revision", "2")
    assert code == 0
    assert messages(out) == STORY
    names = [text.split()[1] for text in out.splitlines()[1:]]
    assert names == ["event", "planner", "operator", "event", "gpt-b", "gpt-a", "gpt-b", "event"]
    # The instance that went has taken its log with it.
    assert err == "parcae: left out: gpt-z: gone, and their logs with them\n"


def test_pods_that_are_gone_since_then_are_named(server: Server, command: Command) -> None:
    long_ago = event(-50.0, "InstanceLost", "the instance of gpt-y-0123abcd on n is lost")
    server.replies[EVENTS][1]["items"].append(long_ago)  # type: ignore[index]
    assert "gpt-y" not in command("gpt", "--revision", "2")[2]  # before that revision
    assert "gpt-y, gpt-z: gone" in command("gpt")[2]


def test_whom_it_asks_for_what(server: Server, command: Command) -> None:
    command("gpt", "--revision", "2")
    assert server.query(PODS) == {"labelSelector": ["parcae.dev/job=gpt"]}
    fields = "involvedObject.kind=ParcaeJob,involvedObject.name=gpt"
    assert server.query(EVENTS) == {"fieldSelector": [fields]}
    asked = server.query(f"{PODS}/gpt-a/log")
    assert asked["container"] == ["agent"]
    # Only what is no older than what an Event tells of the revision, and a little more.
    oldest = time.time() - float(asked["sinceSeconds"][0])
    assert BEGUN - 700 <= oldest <= BEGUN - 500
    assert not any("gpt-old" in path for path in server.asked)  # of another job of that name
    command("gpt")
    assert "sinceSeconds" not in server.query(f"{PODS}/gpt-a/log")


def test_all_revisions(server: Server, command: Command) -> None:
    code, out, _ = command("gpt")
    assert code == 0
    assert messages(out) == [
        "formed long before",
        *STORY,
        "InstanceLost: the instance of gpt-z-0123abcd on n is lost",
    ]


def test_how_far_back(server: Server, command: Command) -> None:
    code, _, _ = command("gpt", "--since", "1h30m")
    assert code == 0
    assert server.query(f"{PODS}/gpt-a/log")["sinceSeconds"] == ["5400"]
    code, out, _ = command("gpt", "--since", "10s")
    assert "Planned" not in out  # Events have no such question: they are chosen here


@pytest.mark.parametrize("since", ["", "10", "m", "1w", "-5m", "5m later"])
def test_a_time_that_is_none(server: Server, command: Command, since: str) -> None:
    code, out, err = command("gpt", "--since", since)
    assert (code, out) == (2, "")
    assert err == f"parcae: --since: is {since!r}; give a time like 90s, 10m or 1h30m\n"
    assert server.asked == []


def test_for_programs(server: Server, command: Command) -> None:
    code, out, _ = command("gpt", "--revision", "2", "-o", "json")
    assert code == 0
    told = [json.loads(text) for text in out.splitlines()]
    assert [each["message"] for each in told] == STORY
    assert {each.get("revision") for each in told} == {2, None}
    times = [datetime.fromisoformat(each["time"]) for each in told]
    assert times == sorted(times)


def test_a_container_that_was_started_again_is_read_from_before(
    server: Server, command: Command
) -> None:
    operator = program("op-1", "operator")
    operator["status"]["containerStatuses"] = [{"name": "agent", "restartCount": 1}]
    server.replies[ALL_PODS] = (200, {"items": [operator]})
    command("gpt")
    asked = [each for each in server.asked if "/op-1/log" in each]
    assert [parse_qs(urlsplit(each).query)["previous"] for each in asked] == [["false"], ["true"]]


def test_lines_of_text_go_by_the_kubelets_clock(server: Server, command: Command) -> None:
    """A container's own says no time zone."""
    text = "2001-01-01 00:00:00,000 INFO parcae_agent.worker: formed at{} [revision=2]\n"
    server.replies[f"{PODS}/gpt-a/log"] = (200, text.format(" @0.85"))
    code, out, _ = command("gpt", "--revision", "2")
    assert code == 0
    assert [m for m in messages(out) if m != "a formed"][-3:] == [
        "b formed",
        "formed at @0.85",
        "Migrated: revision 2 formed at step 5",
    ]


def test_a_pod_where_nothing_runs_yet_is_not_asked(server: Server, command: Command) -> None:
    waiting = agent("gpt-c")
    waiting["status"] = {"phase": "Pending"}
    server.replies[PODS] = (200, {"items": [waiting]})
    _, _, err = command("gpt")
    assert not any("gpt-c/log" in path for path in server.asked)
    assert "gpt-c" not in err


# What cannot be read.


def test_who_may_not_look_at_all_pods_is_shown_the_operator_in_its_usual_place(
    server: Server, command: Command
) -> None:
    server.replies[ALL_PODS] = refusal(403, "User x cannot list pods")
    server.replies["/api/v1/namespaces/parcae/pods"] = (
        200,
        {"items": [program("op-1", "operator")]},
    )
    code, out, _ = command("gpt", "--revision", "2")
    assert code == 0
    assert "plan published" in out


def test_without_the_operators_namespace_the_rest_is_told(server: Server, command: Command) -> None:
    server.replies[ALL_PODS] = refusal(403, "User x cannot list pods")
    where = "/api/v1/namespaces/parcae/pods"
    server.replies[where] = refusal(403, "User x cannot list pods there")
    code, out, err = command("gpt", "--revision", "2")
    assert code == 0
    assert messages(out) == [m for m in STORY if m not in ("1x2 for 2 workers", "plan published")]
    assert (
        "parcae: left out: operator and planner: the API server does not let you read pods of "
        "namespace parcae: User x cannot list pods there\n"
    ) in err


def test_the_user_says_where_the_operator_is(server: Server, command: Command) -> None:
    server.replies["/api/v1/namespaces/infra/pods"] = server.replies[ALL_PODS]
    code, out, _ = command("gpt", "--revision", "2", "--system-namespace", "infra")
    assert code == 0
    assert messages(out) == STORY
    assert not any(urlsplit(path).path == ALL_PODS for path in server.asked)
    server.replies["/api/v1/namespaces/nowhere/pods"] = (200, {"items": []})
    _, _, err = command("gpt", "--system-namespace", "nowhere")
    assert "operator and planner: there are none in namespace nowhere; " in err


@pytest.mark.parametrize(
    ("path", "reply", "said"),
    [
        (EVENTS, refusal(403, "no Events"), "its Events: the API server does not let you read"),
        (PODS, refusal(403, "no pods"), "its agents: the API server does not let you read pods"),
        (f"{PODS}/gpt-a/log", refusal(403, "no logs"), "gpt-a: the API server does not let you"),
        (f"{PODS}/gpt-a/log", (500, "dial tcp: no route"), "gpt-a: the API server at "),
        (f"{PODS}/gpt-a/log", (404, "{}"), "gpt-a: the log of pod team/gpt-a: status 404"),
    ],
)
def test_what_may_not_be_read_is_left_out_and_said(
    server: Server, command: Command, path: str, reply: tuple[int, object], said: str
) -> None:
    server.replies[path] = reply
    code, out, err = command("gpt", "--revision", "2")
    assert code == 0
    assert "plan published" in out
    assert f"parcae: left out: {said}" in err


def test_a_job_that_is_not_there(server: Server, command: Command) -> None:
    server.replies[JOB] = (404, {"reason": "NotFound", "message": "x", "details": {"name": "gpt"}})
    code, out, err = command("gpt", "--revision", "2")
    assert (code, out) == (2, "")
    assert err.startswith("parcae: gpt: there is no ParcaeJob of that name in namespace team; ")
    assert err.count("\n") == 1


def test_a_revision_that_has_not_been(server: Server, command: Command) -> None:
    code, out, err = command("gpt", "--revision", "99")
    assert (code, out) == (2, "")
    newest = TRAINING.revision
    assert err == (f"parcae: --revision: gpt has not come to revision 99; its newest is {newest}\n")


def test_a_revision_of_which_nothing_is_left(server: Server, command: Command) -> None:
    code, out, err = command("gpt", "--revision", "4")
    assert (code, out) == (1, "")
    assert "parcae: team/gpt: nothing is left of revision 4: Events are kept for an hour" in err


def test_a_server_that_talks_nonsense(server: Server, command: Command) -> None:
    server.replies[EVENTS] = (200, "<html>")
    code, out, err = command("gpt")
    assert (code, out) == (1, "")
    assert err == f"parcae: the API server at {server.url} gave an answer without sense\n"


def test_it_needs_a_job_or_a_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        ([], "parcae: NAME: is missing; name a job, or a local run with --run\n"),
        (["gpt", "--run", "x"], "parcae: --run: is of one job only; leave NAME and -n out\n"),
        (
            ["team/gpt"],
            "parcae: NAME: 'team/gpt' cannot be the name of a job; namespaces go to -n\n",
        ),
    ):
        monkeypatch.setattr("sys.argv", ["parcae", "logs", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        assert capsys.readouterr().err == said


def test_events_of_older_servers_have_other_times(server: Server, command: Command) -> None:
    old = event(0.3, "Planned", "revision 2 1x2 (notice): why")
    old |= {"eventTime": None, "lastTimestamp": rfc3339(BEGUN)}
    broken = {**old, "lastTimestamp": None}
    server.replies[EVENTS] = (200, {"items": [old, broken]})
    code, out, _ = command("gpt", "--revision", "2")
    assert code == 0
    assert out.count("Planned") == 1
