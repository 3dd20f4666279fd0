"""The server dies, stands still, is one of several, or its connection dies without a word."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_helpers import MakeClient, Proxy

from parcae_api.errors import BoardRefused, BoardUnavailable
from parcae_api.etcd import EtcdClient
from parcae_cli.etcd_server import EtcdServer


@pytest.fixture
def server(own_server: EtcdServer) -> EtcdServer:
    return own_server


@pytest.fixture
def stopped_server(server: EtcdServer) -> Iterator[EtcdServer]:
    os.kill(server.pid, signal.SIGSTOP)
    yield server
    os.kill(server.pid, signal.SIGCONT)


def _dead_endpoint() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_calls_made_in_an_outage_complete_after_it(server: EtcdServer, client: EtcdClient) -> None:
    client.put("/before", b"1")
    server.kill()
    time.sleep(0.1)  # the client has seen it: a creation sent meanwhile would be indeterminate
    done: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: done.append(client.put("/during", b"2"))),
        threading.Thread(target=lambda: done.append(client.compare_and_swap("/new", 0, b"3"))),
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    assert not done
    server.restart()
    for thread in threads:
        thread.join()
    assert len(done) == 2
    assert None not in done
    items = client.list("/").items
    assert {k: item.value for k, item in items.items()} == {
        "/before": b"1",
        "/during": b"2",
        "/new": b"3",
    }


def test_without_a_server_patience_ends(server: EtcdServer, make_client: MakeClient) -> None:
    client = make_client(patience_s=0.3)
    server.kill()
    for call in (
        lambda: client.get("/a"),
        lambda: client.put("/a", b"1"),
        lambda: client.delete("/a"),
        lambda: client.list("/"),
        lambda: client.compare_and_swap("/a", 0, b"1"),
        lambda: client.lease(5),
    ):
        started_s = time.monotonic()
        with pytest.raises(BoardUnavailable, match=r"within 0\.3 s"):
            call()
        assert 0.2 < time.monotonic() - started_s < 0.5


def test_a_swap_that_never_reached_a_server_is_not_indeterminate(
    server: EtcdServer, make_client: MakeClient
) -> None:
    server.kill()
    with pytest.raises(BoardUnavailable):
        make_client(patience_s=0.5).compare_and_swap("/plan", 0, b"2")


def test_a_server_that_stands_still_ends_patience(
    make_client: MakeClient, stopped_server: EtcdServer
) -> None:
    client = make_client(timeout_s=0.3, patience_s=1.0)
    for call in (lambda: client.get("/a"), lambda: client.put("/a", b"1")):
        started_s = time.monotonic()
        with pytest.raises(BoardUnavailable):
            call()
        assert time.monotonic() - started_s < 1.2


def test_one_try_ends_when_patience_does(
    make_client: MakeClient, stopped_server: EtcdServer
) -> None:
    client = make_client(timeout_s=30.0, patience_s=0.5)
    started_s = time.monotonic()
    with pytest.raises(BoardUnavailable):
        client.get("/a")
    assert time.monotonic() - started_s < 0.8


def test_a_slow_server_is_waited_for(server: EtcdServer, make_client: MakeClient) -> None:
    client = make_client(timeout_s=0.5)
    revision = client.put("/a", b"1")
    os.kill(server.pid, signal.SIGSTOP)
    waker = threading.Timer(1.2, os.kill, (server.pid, signal.SIGCONT))
    waker.start()
    found = client.get("/a")
    waker.join()
    assert found is not None
    assert found.mod_revision == revision


def test_the_second_endpoint_serves_when_the_first_is_dead(
    server: EtcdServer, make_client: MakeClient
) -> None:
    client = make_client(_dead_endpoint(), server.endpoint, patience_s=2.0)
    started_s = time.monotonic()
    client.put("/a", b"1")
    assert time.monotonic() - started_s < 0.5
    created = client.compare_and_swap("/b", 0, b"1")
    assert created is not None


def test_the_second_endpoint_serves_when_the_first_is_mute(
    server: EtcdServer, make_client: MakeClient
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # the kernel connects, nobody answers
        client = make_client(
            f"http://127.0.0.1:{mute.getsockname()[1]}", server.endpoint, timeout_s=0.4
        )
        started_s = time.monotonic()
        client.put("/a", b"1")
        assert time.monotonic() - started_s < 1.0


def test_it_returns_to_the_first_endpoint_when_the_second_dies(
    server: EtcdServer, make_client: MakeClient, proxy: Proxy
) -> None:
    client = make_client(proxy.endpoint, server.endpoint)
    client.put("/a", b"1")
    proxy.close()
    client.put("/a", b"2")
    found = make_client().get("/a")
    assert found is not None
    assert found.value == b"2"


def test_a_connection_that_died_silently_is_replaced(make_client: MakeClient, proxy: Proxy) -> None:
    client = make_client(proxy.endpoint, timeout_s=0.4, patience_s=5.0)
    client.put("/a", b"1")
    proxy.freeze()
    started_s = time.monotonic()
    found = client.get("/a")
    assert time.monotonic() - started_s < 1.2
    assert found is not None
    assert proxy.num_connections == 2


def test_a_full_disk_is_refused_at_once(tmp_path: Path) -> None:
    def fill(client: EtcdClient) -> None:
        for i in range(1000):  # the server measures its file now and then only
            client.put(f"/{i}", b"x" * 100_000)

    small = ["--quota-backend-bytes=300000"]
    with (
        EtcdServer(tmp_path / "small", tmp_path / "log", arguments=small) as server,
        EtcdClient([server.endpoint]) as client,
        pytest.raises(BoardRefused, match="space exceeded"),
    ):
        fill(client)


def test_closing_ends_a_call_in_another_thread(
    make_client: MakeClient, stopped_server: EtcdServer
) -> None:
    client = make_client(timeout_s=20.0, patience_s=20.0)
    ended: list[Exception] = []

    def read() -> None:
        try:
            client.get("/a")
        except BoardUnavailable as error:
            ended.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(0.2)
    client.close()
    thread.join(2.0)
    assert [str(error) for error in ended] == ["the etcd client was closed"]
