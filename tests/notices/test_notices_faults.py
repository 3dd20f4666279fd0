"""Services that are absent, deny, hang, break off or are busy: nothing is lost, none pestered."""

from __future__ import annotations

import logging
import socket

import pytest
from notice_ear import DECIDES, MakeEar, MakeServer, await_listening, wait_for


@pytest.fixture
def nobody() -> str:
    """An address that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_no_service_is_said_once(
    make_ear: MakeEar, nobody: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ear = make_ear(nobody, probe_again_s=0.01)
        wait_for(lambda: "no metadata service" in caplog.text, "it says so")
        host, _, port = nobody.removeprefix("http://").rpartition(":")
        with socket.create_server((host, int(port))) as late:
            late.accept()[0].close()  # it asks again, later
        ear.close()
    assert caplog.text.count("no metadata service") == 1
    assert ear.told == []


def test_service_that_comes_up_late(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("gce")
    server.fail("close")
    ear = make_ear(server.url)
    wait_for(lambda: len(server.requests) > 6, "it is looked for more than once")
    server.heal()
    server.notice()
    ear.await_notice()


@pytest.mark.parametrize("kind", ["403", "404", "400", "hang", "garbage", "500"])
def test_access_is_denied(make_server: MakeServer, make_ear: MakeEar, kind: str) -> None:
    """A container that may not reach the service: quiet, and asked ever more rarely."""
    server = make_server("aws")
    server.fail(kind)
    ear = make_ear(server.url, timeout_s=0.05, probe_again_s=0.01)
    wait_for(lambda: len(server.requests) >= 6, "it is probed twice")
    ear.close()
    assert ear.told == []
    assert all("instance-action" not in request for request in server.requests)


@pytest.mark.parametrize("cloud", ["aws", "gce", "azure"])
@pytest.mark.parametrize("kind", ["cut", "close", "garbage", "huge", "hang", "drip", "500", "503"])
def test_answers_that_fail_change_nothing(
    make_server: MakeServer, make_ear: MakeEar, cloud: str, kind: str
) -> None:
    """An error is no answer: what was heard stays, and what comes later is heard."""
    server = make_server(cloud)
    ear = make_ear(server.url, timeout_s=0.3)
    await_listening(server, cloud)
    retry = {"retry_after": "0"} if kind == "503" else {}
    server.fail(kind, times=2, path=DECIDES[cloud], **retry)
    if cloud == "gce":  # its questions are long open: have them asked anew
        server.update({"preempted": "FALSE "})
        server.update({"preempted": "FALSE"})
    server.notice()
    ear.await_notice()
    assert len([heard for heard in ear.told if heard.notice]) == 1


@pytest.mark.parametrize("status", ["429", "503"])
def test_busy_service_is_left_alone(
    make_server: MakeServer, make_ear: MakeEar, status: str
) -> None:
    server = make_server("azure")
    ear = make_ear(server.url)
    wait_for(lambda: server.count("scheduledevents") > 1, "it listens")
    server.fail(status, retry_after="3600", path="scheduledevents")
    asked = server.count("scheduledevents")
    wait_for(lambda: server.count("scheduledevents") == asked + 1, "asked once more")
    other = make_server("azure")
    make_ear(other.url)
    wait_for(lambda: other.count("scheduledevents") > 20, "time for twenty questions passes")
    assert server.count("scheduledevents") <= asked + 1
    ear.close()


def test_hint_outlives_a_service_that_fails(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("aws")
    ear = make_ear(server.url)
    server.update({"rebalance": "2030-01-01T00:00:00Z"})
    hint = ear.await_hint()
    server.fail("500")
    asked = len(server.requests)
    wait_for(lambda: len(server.requests) > asked + 4, "it is asked in vain")
    assert ear.told[-1].hint == hint
    assert len(ear.told) == 1


def test_service_that_denies_what_it_gave_is_looked_for_again(
    make_server: MakeServer, make_ear: MakeEar, caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server("azure")
    with caplog.at_level(logging.INFO):
        ear = make_ear(server.url)
        wait_for(lambda: server.count("scheduledevents") > 1, "it listens")
        server.fail("403", path="scheduledevents")
        wait_for(lambda: "is lost" in caplog.text, "it gives up")
        server.heal()
        server.notice()
        ear.await_notice()


def test_ends_at_once_while_a_question_is_open(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("gce")
    ear = make_ear(server.url)
    wait_for(lambda: server.count("last_etag") == 2, "both wait for a minute")
    ear.close()
    assert not ear.listener._thread.is_alive()


def test_only_the_cloud_that_is_named(make_server: MakeServer, make_ear: MakeEar) -> None:
    server = make_server("aws")
    ear = make_ear(server.url, listen="gce", probe_again_s=0.01)
    wait_for(lambda: len(server.requests) >= 2, "it is probed")
    ear.close()
    assert server.count("PUT") == 0
    quiet = make_server("aws")
    off = make_ear(quiet.url, listen="off")
    off.close()
    assert quiet.requests == []
