"""Leases: keys end with their holder, and not with an outage of the server."""

from __future__ import annotations

import time

import pytest
from board_helpers import MakeClient, Proxy, wait_until

from parcae_api import etcd_calls
from parcae_api.errors import BoardRefused, BoardUnavailable
from parcae_api.etcd import EtcdClient
from parcae_cli.etcd_server import EtcdServer


@pytest.fixture
def server(own_server: EtcdServer) -> EtcdServer:
    return own_server


def test_its_keys_live_while_it_is_renewed_and_end_afterwards(client: EtcdClient) -> None:
    lease = client.lease(1)
    assert lease.ttl_s == 1
    client.put("/agent", b"1", lease)
    time.sleep(2.2)
    found = client.get("/agent")
    assert found is not None
    assert found.lease_id == lease.id
    assert 0.3 < lease.remaining_s <= 1
    lease.close()
    closed_s = time.monotonic()
    wait_until(lambda: client.get("/agent") is None)
    assert 0.3 < time.monotonic() - closed_s < 4
    assert lease.remaining_s < 0.7
    assert not lease.lost.is_set()


def test_revoking_deletes_its_keys_at_once(client: EtcdClient) -> None:
    lease = client.lease(60)
    assert client.compare_and_swap("/agent", 0, b"1", lease) is not None
    lease.revoke()
    assert client.get("/agent") is None
    lease.revoke()
    with pytest.raises(BoardRefused, match="lease not found"):
        client.put("/agent", b"1", lease)


def test_it_outlives_the_server(server: EtcdServer, client: EtcdClient) -> None:
    lost: list[bool] = []
    lease = client.lease(1, on_lost=lambda: lost.append(True))
    client.put("/agent", b"1", lease)
    server.kill()
    time.sleep(1.5)  # longer than its time to live
    assert lease.remaining_s < 0
    server.restart()
    wait_until(lambda: lease.remaining_s > 0)
    time.sleep(1.5)
    assert client.get("/agent") is not None
    assert not lease.lost.is_set()
    assert not lost


def test_it_says_so_when_the_server_gave_it_up(
    client: EtcdClient, make_client: MakeClient, proxy: Proxy
) -> None:
    lost: list[bool] = []
    lease = make_client(proxy.endpoint).lease(1, on_lost=lambda: lost.append(True))
    client.put("/agent", b"1", lease)
    proxy.cut()
    wait_until(lambda: client.get("/agent") is None)
    assert not lease.lost.is_set()  # nobody has told it
    proxy.mend()
    assert lease.lost.wait(2.0)
    wait_until(lambda: not lease.is_running)
    assert lost == [True]


def test_it_notices_that_another_revoked_it(client: EtcdClient, make_client: MakeClient) -> None:
    lease = client.lease(1)
    other = make_client()
    other._session.call(etcd_calls.revoke(lease.id), 1.0)
    assert lease.lost.wait(2.0)


def test_it_survives_a_connection_that_died_silently(
    client: EtcdClient, make_client: MakeClient, proxy: Proxy
) -> None:
    lease = make_client(proxy.endpoint, timeout_s=0.2).lease(1)
    client.put("/agent", b"1", lease)
    proxy.freeze()
    time.sleep(2.0)
    assert client.get("/agent") is not None
    assert not lease.lost.is_set()


def test_revoking_without_a_server_ends_in_time(server: EtcdServer, client: EtcdClient) -> None:
    lease = client.lease(5)
    server.kill()
    started_s = time.monotonic()
    with pytest.raises(BoardUnavailable):
        lease.revoke(patience_s=0.5)
    assert time.monotonic() - started_s < 0.8
    assert not lease.is_running
