"""Metadata services of AWS, Google and Azure for tests: each cloud's protocol, a control beside it.

In a test::

    with MetadataServer("aws") as cloud:
        cloud.url, cloud.notice(), cloud.update({"lifecycle": "Terminated"}), cloud.fail("hang")

As a program, one per node, with any Python and nothing installed::

    python -m tests.support.metadata_servers aws --bind 169.254.169.254:80 --control /run/c.sock

It prints one line of JSON with its addresses, and serves until SIGTERM. The control speaks HTTP, on
a port or on a Unix socket, which other network namespaces reach too::

    curl --unix-socket /run/c.sock -X POST http://x/notice          the cloud's own, at its own time
    curl --unix-socket /run/c.sock -X POST http://x/clear           nothing is announced any more
    curl --unix-socket /run/c.sock -X PUT  http://x/state -d '{"lifecycle": "Terminated"}'
    curl --unix-socket /run/c.sock -X PUT  http://x/fault -d '{"kind": "429", "retry_after": "3"}'
    curl --unix-socket /run/c.sock http://x/                        state, and what was asked so far

Faults: ``hang``, ``cut`` (dies in the middle of an answer), ``close`` (says nothing), ``garbage``,
``huge``, ``drip``, or a status as ``429`` or ``503``; ``times`` limits how often, ``path`` which
questions.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import secrets
import signal
import socket
import socketserver
import sys
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

Reply = tuple[int, str, dict[str, str]]
"""Status, body, headers."""


class Cloud:
    """A metadata service: state in, replies out. Its lock guards its state."""

    initial: dict[str, Any] = {}

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.state: dict[str, Any] = json.loads(json.dumps(self.initial))
        self.closed = False

    def reply(self, method: str, path: str, query: dict[str, str], headers: Any) -> Reply:
        raise NotImplementedError

    def announce(self) -> dict[str, Any]:
        """The state in which the cloud announces that it takes the instance."""
        raise NotImplementedError

    def update(self, state: dict[str, Any]) -> None:
        with self.changed:
            unknown = set(state) - set(self.initial)
            if unknown:
                raise ValueError(f"no state of this cloud: {sorted(unknown)}")
            self.state.update(state)
            self.changed.notify_all()


class Aws(Cloud):
    """IMDSv2 only: without a token that still holds, every question is answered with 401."""

    initial = {
        "spot_action": None,
        "rebalance": None,
        "scheduled": [],
        "lifecycle": "InService",
        "life_cycle_kind": "spot",
        "most_ttl_s": 21600,
    }
    _TTL = "X-aws-ec2-metadata-token-ttl-seconds"

    def __init__(self) -> None:
        super().__init__()
        self._tokens: dict[str, float] = {}

    def announce(self) -> dict[str, Any]:
        at = datetime.fromtimestamp(time.time() + 120, UTC)
        return {"spot_action": {"action": "terminate", "time": at.strftime("%Y-%m-%dT%H:%M:%SZ")}}

    def forget_tokens(self) -> None:
        """What a restart of the service does."""
        with self.changed:
            self._tokens.clear()

    def reply(self, method: str, path: str, query: dict[str, str], headers: Any) -> Reply:
        if path == "/latest/api/token":
            return self._token(method, headers)
        if method != "GET":
            return 405, "", {}
        token = headers.get("X-aws-ec2-metadata-token", "")
        if self._tokens.get(token, 0.0) <= time.monotonic():
            return 401, "", {}
        found = self._values().get(path.removeprefix("/latest/meta-data/"))
        return (404, "<title>404 - Not Found</title>", {}) if found is None else (200, found, {})

    def _token(self, method: str, headers: Any) -> Reply:
        if method != "PUT":
            return 405, "", {}
        if headers.get("X-Forwarded-For"):
            return 403, "", {}
        asked = headers.get(self._TTL, "")
        if not asked.isdigit() or not 1 <= int(asked) <= 21600:
            return 400, "", {}
        ttl_s = min(float(asked), float(self.state["most_ttl_s"]))
        token = secrets.token_urlsafe(40)
        self._tokens[token] = time.monotonic() + ttl_s
        return 200, token, {self._TTL: f"{ttl_s:g}"}

    def _values(self) -> dict[str, str | None]:
        state = self.state
        action, rebalance = state["spot_action"], state["rebalance"]
        return {
            "instance-id": "i-0123456789abcdef0",
            "instance-life-cycle": state["life_cycle_kind"],
            "spot/instance-action": action if isinstance(action, str | None) else _json(action),
            "spot/termination-time": action.get("time") if isinstance(action, dict) else None,
            "events/recommendations/rebalance": _json({"noticeTime": rebalance})
            if rebalance
            else None,
            "events/maintenance/scheduled": _json(state["scheduled"]),
            "autoscaling/target-lifecycle-state": state["lifecycle"],
        }


class Gce(Cloud):
    """Answers are held back until something changes, if that is asked for."""

    initial = {"preempted": "FALSE", "maintenance-event": "NONE", "preemptible": "TRUE"}
    _PREFIX = "/computeMetadata/v1/instance/"

    def announce(self) -> dict[str, Any]:
        return {"preempted": "TRUE"}

    def reply(self, method: str, path: str, query: dict[str, str], headers: Any) -> Reply:
        google = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
        if headers.get("Metadata-Flavor") != "Google" or headers.get("X-Forwarded-For"):
            return 403, "Missing required header Metadata-Flavor: Google", google
        key = path.removeprefix(self._PREFIX).removeprefix("scheduling/")
        if method != "GET" or not path.startswith(self._PREFIX) or key not in self.state:
            return 404, "", google
        with self.changed:
            if query.get("wait_for_change") == "true":
                last = query.get("last_etag") or self._etag(key)
                limit_s = float(query.get("timeout_sec", "3600"))
                self.changed.wait_for(lambda: self.closed or self._etag(key) != last, limit_s)
            return 200, self.state[key], {**google, "ETag": self._etag(key)}

    def _etag(self, key: str) -> str:
        return hashlib.sha256(f"{key}={self.state[key]}".encode()).hexdigest()[:16]


class Azure(Cloud):
    """Scheduled events of a whole group of machines, and acknowledgements, which are counted."""

    initial = {"events": [], "name": "aks-gpu-1-vmss_12", "acknowledged": []}
    _EVENT_VERSIONS = ("2017-11-01", "2019-08-01", "2020-07-01")
    _INSTANCE_VERSIONS = ("2019-08-01", "2020-09-01", "2021-02-01")

    def __init__(self) -> None:
        super().__init__()
        self._incarnation = 1

    def announce(self) -> dict[str, Any]:
        return {"events": [azure_event("Preempt", [self.state["name"]], 30.0)]}

    def update(self, state: dict[str, Any]) -> None:
        super().update(state)
        if "events" in state:
            self._incarnation += 1

    def reply(self, method: str, path: str, query: dict[str, str], headers: Any) -> Reply:
        json_type = {"Content-Type": "application/json; charset=utf-8"}
        if headers.get("Metadata", "").lower() != "true":
            return 400, _json({"error": "Bad request. Required metadata header not specified"}), {}
        if headers.get("X-Forwarded-For"):
            return 400, _json({"error": "Bad request. X-Forwarded-For is not allowed"}), {}
        events = path == "/metadata/scheduledevents"
        known = self._EVENT_VERSIONS if events else self._INSTANCE_VERSIONS
        if query.get("api-version") not in known:
            error = {"error": "Bad request. api-version is invalid", "newest-versions": known}
            return 400, _json(error), json_type
        if events and method == "POST":
            self.state["acknowledged"].append(method)
            return 200, "", {}
        if events:
            found = {"DocumentIncarnation": self._incarnation, "Events": self.state["events"]}
            return 200, _json(found), json_type
        if path == "/metadata/instance/compute/name" and query.get("format") == "text":
            return 200, self.state["name"], {"Content-Type": "text/plain; charset=utf-8"}
        return 404, "", {}


CLOUDS: dict[str, type[Cloud]] = {"aws": Aws, "gce": Gce, "azure": Azure}


def azure_event(kind: str, resources: list[str], in_s: float, **more: Any) -> dict[str, Any]:
    """An event as Azure writes it, for so many seconds from now."""
    at = datetime.fromtimestamp(time.time() + in_s, UTC)
    return {
        "EventId": secrets.token_hex(16).upper(),
        "EventType": kind,
        "ResourceType": "VirtualMachine",
        "Resources": resources,
        "EventStatus": "Scheduled",
        "NotBefore": at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "Description": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
        **more,
    }


def _json(value: Any) -> str:
    return json.dumps(value)


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Callers hang up all the time: tests are full of that."""


class _UnixServer(_Server):
    address_family = socket.AF_UNIX


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: MetadataServer

    def log_message(self, *_: Any) -> None:
        pass

    def address_string(self) -> str:
        return "a caller"

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, reply: Reply) -> None:
        status, text, headers = reply
        body = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self) -> None:
        raise NotImplementedError

    def do_GET(self) -> None:
        self.answer()

    do_PUT = do_POST = do_GET


class _Service(_Handler):
    """What the agent talks to."""

    def answer(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        self.body()
        owner = self.owner
        with owner.cloud.changed:
            owner.requests.append(f"{self.command} {self.path}")
            fault = owner.take_fault(parts.path)
        if fault is not None:
            self.fail(fault)
            return
        self.send(owner.cloud.reply(self.command, parts.path, query, self.headers))

    def fail(self, fault: dict[str, Any]) -> None:
        kind = str(fault["kind"])
        if kind.isdigit():
            retry = fault.get("retry_after")
            self.send((int(kind), "", {"Retry-After": str(retry)} if retry is not None else {}))
            return
        self.close_connection = True
        if kind == "hang":
            self.owner.released.wait()
        elif kind == "cut":
            self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"act')
        elif kind == "garbage":
            self.send((200, "\x00<html>?", {"ETag": "<>", "Metadata-Flavor": "Google"}))
        elif kind == "huge":
            with contextlib.suppress(OSError):
                self.send((200, "x" * 4_000_000, {}))
        elif kind == "drip":
            self.drip()

    def drip(self) -> None:
        """Never silent for long, and never done."""
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not self.owner.released.wait(0.05):
                self.wfile.write(b"x")


class _Control(_Handler):
    """What the test talks to."""

    def answer(self) -> None:
        owner, path = self.owner, urlsplit(self.path).path
        try:
            given = json.loads(self.body() or b"{}")
            match self.command, path:
                case "POST", "/notice":
                    owner.notice()
                case "POST", "/clear":
                    owner.clear()
                case "PUT", "/state":
                    owner.update(given)
                case "PUT", "/fault":
                    owner.fail(**given) if given else owner.heal()
                case "GET", "/":
                    pass
                case _:
                    self.send((404, _json({"error": f"no such control: {path}"}), {}))
                    return
        except (ValueError, TypeError, AttributeError) as error:
            self.send((400, _json({"error": str(error)}), {}))
            return
        with owner.cloud.changed:
            found = {"state": owner.cloud.state, "requests": owner.requests[-1000:]}
        self.send((200, _json(found), {}))


class MetadataServer:
    """One service and, where an address for it is given, its control."""

    def __init__(self, cloud: str, bind: str = "127.0.0.1:0", control: str | None = None) -> None:
        """``control`` is ``host:port`` or the path of a Unix socket."""
        self.cloud = CLOUDS[cloud]()
        self.requests: list[str] = []
        self.released = threading.Event()
        """Set at the end, for callers that are kept hanging."""
        self._fault: dict[str, Any] | None = None
        self._socket_path = control if control and "/" in control else None
        self._service = _listen(bind, self._handler(_Service))
        self._control = _listen(control, self._handler(_Control)) if control else None
        self._threads = [
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            for server in (self._service, self._control)
            if server is not None
        ]
        for thread in self._threads:
            thread.start()

    @property
    def url(self) -> str:
        host, port = self._service.server_address[:2]
        return f"http://{host}:{port}"

    @property
    def control(self) -> str:
        if self._control is None:
            return ""
        if self._socket_path is not None:
            return self._socket_path
        host, port = self._control.server_address[:2]
        return f"http://{host}:{port}"

    def update(self, state: dict[str, Any]) -> None:
        """Set some of the cloud's state."""
        self.cloud.update(state)

    def notice(self) -> None:
        """The cloud announces that it takes the instance, with its own lead."""
        self.cloud.update(self.cloud.announce())

    def clear(self) -> None:
        """Nothing is announced any more."""
        self.cloud.update(json.loads(json.dumps(self.cloud.initial)))

    def fail(self, kind: str, times: int = -1, path: str = "", **more: Any) -> None:
        """Answer wrongly: so often (for ever by default), to paths that hold a text."""
        with self.cloud.changed:
            self._fault = {"kind": kind, "times": times, "path": path, **more}

    def heal(self) -> None:
        """Answer well again."""
        with self.cloud.changed:
            self._fault = None

    def take_fault(self, path: str) -> dict[str, Any] | None:
        fault = self._fault
        if fault is None or fault["path"] not in path or fault["times"] == 0:
            return None
        fault["times"] -= 1
        return fault

    def count(self, text: str) -> int:
        """Questions so far whose method and path hold a text."""
        with self.cloud.changed:
            return sum(text in request for request in self.requests)

    def close(self) -> None:
        with self.cloud.changed:
            self.cloud.closed = True
            self.cloud.changed.notify_all()
        self.released.set()
        for server in (self._service, self._control):
            if server is not None:
                server.shutdown()
                server.server_close()
        for thread in self._threads:
            thread.join()
        if self._socket_path is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._socket_path)

    def __enter__(self) -> MetadataServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handler(self, kind: type[_Handler]) -> type[_Handler]:
        return type(kind.__name__, (kind,), {"owner": self})


def _listen(address: str, handler: type[_Handler]) -> _Server:
    if "/" in address:
        return _UnixServer(address, handler)  # type: ignore[arg-type]
    host, _, port = address.rpartition(":")
    return _Server((host, int(port)), handler)


def main() -> None:
    parser = argparse.ArgumentParser(description="A cloud's metadata service, for tests.")
    parser.add_argument("cloud", choices=sorted(CLOUDS))
    parser.add_argument("--bind", default="127.0.0.1:0", metavar="HOST:PORT")
    parser.add_argument("--control", metavar="HOST:PORT | PATH", default="127.0.0.1:0")
    parser.add_argument("--state", type=json.loads, default={}, metavar="JSON")
    given = parser.parse_args()
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    with MetadataServer(given.cloud, given.bind, given.control) as server:
        server.cloud.update(given.state)
        json.dump({"url": server.url, "control": server.control}, sys.stdout)
        print(flush=True)
        done.wait()


if __name__ == "__main__":
    main()
