"""Calls to an API server that answers in every way there is."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kube_objects import Object, make_pod
from kubernetes.aio import client

import parcae_operator.kube.api as api_module
from parcae_operator.kube.api import ClusterApi
from parcae_operator.kube.errors import (
    ClusterError,
    ClusterRefused,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    NotFound,
)

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]
Work = Callable[["Server", ClusterApi], Coroutine[Any, Any, None]]
JOBS = "/apis/parcae.dev/v1alpha1"


class Server:
    """Answers as told, in turn; the last answer stays. Remembers what was asked."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.asked: list[tuple[str, str, dict[str, str], Any, str]] = []
        self.url = ""

    def will(self, *replies: Reply) -> None:
        self.replies = list(replies)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else None
        kind = request.headers.get("Content-Type", "")
        self.asked.append((request.method, request.path, dict(request.query), body, kind))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return await reply(request)


def says(status: int, body: object = None, **headers: str) -> Reply:
    async def reply(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        text = body if isinstance(body, str) else json.dumps(body if body is not None else {})
        return web.Response(status=status, text=text, headers=named)

    return reply


def refuses(status: int, message: str = "no", **headers: str) -> Reply:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": status}
    return says(status, body, **headers)


async def hangs(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def breaks(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def stops_halfway(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"items": [')
    assert request.transport is not None
    request.transport.close()
    return response


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[ClusterApi]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    server.url = f"http://{host}:{port}"
    try:
        async with ClusterApi(client.Configuration(host=server.url)) as api:
            yield api
    finally:
        await runner.cleanup()


def with_server(work: Work) -> Server:
    server = Server()

    async def run() -> None:
        async with serving(server) as api:
            await work(server, api)

    asyncio.run(run())
    return server


def error_of(reply: Reply, call: Callable[[ClusterApi], Awaitable[object]]) -> ClusterError:
    """What a call raises when that is the answer."""
    found: list[ClusterError] = []

    async def work(server: Server, api: ClusterApi) -> None:
        server.will(reply)
        with pytest.raises(ClusterError) as caught:
            await call(api)
        found.append(caught.value)

    with_server(work)
    return found[0]


# What is asked.


def test_every_call_asks_for_what_it_is_named_after() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(says(200, {"items": [{"a": 1}], "resources": [{"name": "parcaejobs"}]}))
        assert await api.jobs() == [{"a": 1}]
        assert await api.jobs("team") == [{"a": 1}]
        assert await api.pods("parcae.dev/job") == [{"a": 1}]
        assert await api.pods("x=y", "team") == [{"a": 1}]
        assert await api.nodes() == [{"a": 1}]
        await api.create_pod(make_pod("p"))
        await api.delete_pod("team", "p", "u1")
        await api.delete_pod("team", "p", "u1", grace_s=0)
        await api.delete_job("team", "gpt", "u2")
        await api.write_status("team", "gpt", "u2", {"step": 3, "lastMigration": None})
        await api.create_event("team", {"reason": "Planned"})
        assert await api.has_jobs_kind()

    server = with_server(work)
    page = {"limit": "500"}
    uid = {"preconditions": {"uid": "u1"}, "propagationPolicy": "Background"}
    assert [asked[:4] for asked in server.asked] == [
        ("GET", f"{JOBS}/parcaejobs", page, None),
        ("GET", f"{JOBS}/namespaces/team/parcaejobs", page, None),
        ("GET", "/api/v1/pods", {"labelSelector": "parcae.dev/job", **page}, None),
        ("GET", "/api/v1/namespaces/team/pods", {"labelSelector": "x=y", **page}, None),
        ("GET", "/api/v1/nodes", page, None),
        ("POST", "/api/v1/namespaces/team/pods", {}, server.asked[5][3]),
        ("DELETE", "/api/v1/namespaces/team/pods/p", {}, uid),
        ("DELETE", "/api/v1/namespaces/team/pods/p", {}, {**uid, "gracePeriodSeconds": 0}),
        (
            "DELETE",
            f"{JOBS}/namespaces/team/parcaejobs/gpt",
            {},
            {**uid, "preconditions": {"uid": "u2"}},
        ),
        (
            "PATCH",
            f"{JOBS}/namespaces/team/parcaejobs/gpt/status",
            {},
            {"metadata": {"uid": "u2"}, "status": {"step": 3, "lastMigration": None}},
        ),
        (
            "POST",
            "/apis/events.k8s.io/v1/namespaces/team/events",
            {},
            {"reason": "Planned"},
        ),
        ("GET", JOBS, {}, None),
    ]
    assert server.asked[9][4] == "application/merge-patch+json"
    assert server.asked[5][3]["metadata"]["name"] == "p"


def test_a_secret_is_made_or_given_the_same_data_and_never_read() -> None:
    secret = {"metadata": {"namespace": "team", "name": "s"}, "data": {"a": "MQ=="}}

    async def work(server: Server, api: ClusterApi) -> None:
        server.will(says(200, {}))
        await api.put_secret(secret)
        server.will(refuses(409), says(200, {}))
        await api.put_secret(secret)

    path = "/api/v1/namespaces/team/secrets"
    assert [asked[:4] for asked in with_server(work).asked] == [
        ("POST", path, {}, secret),
        ("POST", path, {}, secret),
        ("PATCH", f"{path}/s", {}, {"data": secret["data"]}),
    ]


def test_a_network_policy_is_made_given_the_same_rules_or_deleted() -> None:
    policy = {"metadata": {"namespace": "team", "name": "p"}, "spec": {"policyTypes": ["Egress"]}}

    async def work(server: Server, api: ClusterApi) -> None:
        server.will(refuses(409), says(200, {}))
        await api.put_network_policy(policy)
        server.will(says(200, {}), refuses(404))
        await api.delete_network_policy("team", "p")
        await api.delete_network_policy("team", "p")

    path = "/apis/networking.k8s.io/v1/namespaces/team/networkpolicies"
    assert [asked[:4] for asked in with_server(work).asked] == [
        ("POST", path, {}, policy),
        ("PATCH", f"{path}/p", {}, {"spec": policy["spec"]}),
        ("DELETE", f"{path}/p", {}, None),
        ("DELETE", f"{path}/p", {}, None),
    ]


def test_a_cluster_without_our_kind() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(refuses(404))
        assert not await api.has_jobs_kind()
        server.will(says(200, {"resources": [{"name": "others"}]}))
        assert not await api.has_jobs_kind()
        server.will(says(200, {"resources": []}))
        assert not await api.has_jobs_kind()

    with_server(work)


# What is answered.


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (400, ClusterRefused),
        (405, ClusterRefused),
        (410, ClusterRefused),
        (422, ClusterRefused),
        (408, ClusterUnavailable),
        (429, ClusterUnavailable),
        (500, ClusterUnavailable),
        (503, ClusterUnavailable),
    ],
)
def test_a_refusal_says_what_was_asked_and_why_not(status: int, kind: type[ClusterError]) -> None:
    error = error_of(refuses(status, "the server's words"), lambda api: api.create_pod(make_pod()))
    assert type(error) is kind
    assert str(error) == f"POST /api/v1/namespaces/team/pods: {status} the server's words"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "soon"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_asks_for_time_is_understood(
    status: int, header: dict[str, str], seconds: float | None
) -> None:
    error = error_of(refuses(status, **header), lambda api: api.nodes())
    assert isinstance(error, ClusterUnavailable)
    assert error.retry_after_s == seconds


@pytest.mark.parametrize(
    "body", ["<html>gateway</html>", "", "[]", '{"message": 5}', '"x"', "null"]
)
def test_a_refusal_in_any_words_is_a_refusal(body: str) -> None:
    error = error_of(says(403, body), lambda api: api.nodes())
    assert isinstance(error, Forbidden)
    assert len(str(error)) < 300


def test_a_message_without_end_is_cut() -> None:
    assert len(str(error_of(refuses(422, "x" * 100_000), lambda api: api.nodes()))) < 600


@pytest.mark.parametrize("body", ["{", "<html>", "\x00"])
def test_an_answer_that_is_no_json_is_no_answer(body: str) -> None:
    error = error_of(says(200, body), lambda api: api.nodes())
    assert isinstance(error, ClusterUnavailable)
    assert "is no JSON" in str(error)


@pytest.mark.parametrize("body", ["[]", "5", "null", "{}", '{"items": null}', '{"metadata": null}'])
def test_an_answer_without_items_is_an_empty_list(body: str) -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(says(200, body))
        assert await api.nodes() == []

    with_server(work)


@pytest.mark.parametrize("status", [404, 409])
def test_deleting_what_is_gone_or_another_is_done(status: int) -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(refuses(status))
        await api.delete_pod("team", "p", "u")
        await api.delete_job("team", "gpt", "u")

    with_server(work)


def test_deleting_what_may_not_be_deleted_is_not() -> None:
    assert isinstance(error_of(refuses(403), lambda api: api.delete_pod("t", "p", "u")), Forbidden)


# No answer.


@pytest.mark.parametrize("reply", [breaks, stops_halfway])
def test_a_connection_that_breaks_is_no_answer(reply: Reply) -> None:
    assert isinstance(error_of(reply, lambda api: api.nodes()), ClusterUnavailable)


def test_a_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_TIMEOUT_S", 0.2)
    error = error_of(hangs, lambda api: api.nodes())
    assert isinstance(error, ClusterUnavailable)
    assert str(error) == "GET /api/v1/nodes: TimeoutError"


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def run() -> None:
            async with ClusterApi(client.Configuration(host=url)) as api:
                with pytest.raises(ClusterUnavailable, match=r"GET /api/v1/nodes: .*onnect"):
                    await api.nodes()

        asyncio.run(run())


def test_a_server_that_comes_back_is_talked_to_again() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        for reply in (breaks, refuses(500)):
            server.will(reply)
            with pytest.raises(ClusterUnavailable):
                await api.nodes()
        server.will(says(200, {"items": [{"a": 1}]}))
        assert await api.nodes() == [{"a": 1}]

    with_server(work)


def test_a_write_is_sent_once() -> None:
    for reply in (breaks, refuses(500), refuses(429, Retry_After="1")):

        async def work(server: Server, api: ClusterApi, reply: Reply = reply) -> None:
            server.will(reply)
            with pytest.raises(ClusterUnavailable):
                await api.create_pod(make_pod())
            assert len(server.asked) == 1

        with_server(work)


# Lists of many pages.


def page(*names: str, more: str = "") -> Reply:
    return says(200, {"items": [{"name": n} for n in names], "metadata": {"continue": more}})


def test_a_long_list_comes_in_pages() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(page("a", more="t1"), page("b", more="t2"), page("c"))
        assert [item["name"] for item in await api.nodes()] == ["a", "b", "c"]
        assert [asked[2].get("continue") for asked in server.asked] == [None, "t1", "t2"]

    with_server(work)


def test_a_list_that_went_out_of_date_begins_again() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(page("a", more="t1"), refuses(410), page("a", more="t2"), page("b"))
        assert [item["name"] for item in await api.nodes()] == ["a", "b"]

    with_server(work)


def test_a_list_that_goes_out_of_date_again_and_again_is_given_up() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(*[page("a", more="t"), refuses(410)] * 10)
        with pytest.raises(ClusterRefused, match="410"):
            await api.nodes()
        assert len(server.asked) == 6

    with_server(work)


def test_half_a_list_is_no_list() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(page("a", more="t1"), refuses(500))
        with pytest.raises(ClusterUnavailable):
            await api.nodes()

    with_server(work)


# Names are not paths.


def test_names_are_quoted() -> None:
    async def work(server: Server, api: ClusterApi) -> None:
        server.will(says(200))
        await api.delete_pod("team", "a b?c=d", "u")
        assert server.asked[0][1] == "/api/v1/namespaces/team/pods/a b?c=d"
        assert server.asked[0][2] == {}

    with_server(work)


# Who we are.


def test_the_users_kubeconfig_is_used_outside_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(server: Server, _: ClusterApi) -> None:
        config: Object = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {"token": "secret"}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        seen: list[str | None] = []

        async def reply(request: web.Request) -> web.StreamResponse:
            seen.append(request.headers.get("Authorization"))
            return web.json_response({"items": []})

        server.will(reply)
        async with await ClusterApi.connect() as api:
            await api.nodes()
        assert seen == ["Bearer secret"]

    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(
        "kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config")
    )
    with_server(work)
