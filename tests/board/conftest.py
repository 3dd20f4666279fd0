"""A fresh etcd for each test, and clients that must leave no thread behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from board_helpers import MakeClient, Proxy, wait_until

from parcae_api.etcd import EtcdClient
from parcae_cli.etcd_server import EtcdServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.processes)


def _our_threads() -> set[threading.Thread]:
    ours = ("board-", "etcd-parent")
    return {t for t in threading.enumerate() if t.name.startswith(ours)}


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """For tests that do it no harm."""
    folder = tmp_path_factory.mktemp("shared")
    with EtcdServer(folder / "etcd", folder / "etcd.log", unsafe_no_fsync=True) as server:
        yield server


@pytest.fixture(autouse=True)
def _no_thread_is_left(shared_server: EtcdServer) -> Iterator[None]:
    before = _our_threads()
    yield
    assert _our_threads() == before


@pytest.fixture
def server(shared_server: EtcdServer) -> EtcdServer:
    """Without a key. Modules that kill or stop it put ``own_server`` in its place."""
    with EtcdClient([shared_server.endpoint]) as client:
        client.delete_prefix("/")
    return shared_server


@pytest.fixture
def own_server(tmp_path: Path, _no_thread_is_left: None) -> Iterator[EtcdServer]:
    with EtcdServer(tmp_path / "etcd", tmp_path / "etcd.log", unsafe_no_fsync=True) as server:
        yield server
        server.kill()


@pytest.fixture
def make_client(server: EtcdServer) -> Iterator[MakeClient]:
    made: list[EtcdClient] = []

    def make(*endpoints: str, **options: Any) -> EtcdClient:
        options = {"timeout_s": 1.0, "patience_s": 10.0, **options}
        made.append(EtcdClient(endpoints or [server.endpoint], **options))
        return made[-1]

    yield make
    for client in made:
        client.close()
    # gRPC's own threads end too, a moment later.
    wait_until(lambda: not [t for t in threading.enumerate() if "grpc" in t.name.lower()], 5.0)


@pytest.fixture
def client(make_client: MakeClient) -> EtcdClient:
    return make_client()


@pytest.fixture
def proxy(server: EtcdServer) -> Iterator[Proxy]:
    proxy = Proxy(int(server.endpoint.rpartition(":")[2]))
    yield proxy
    proxy.close()
