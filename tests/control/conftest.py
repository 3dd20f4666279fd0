"""A real etcd for the loop's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from control_site import Site

from parcae_cli.etcd_server import EtcdServer


@pytest.fixture(scope="session")
def shared_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    folder = tmp_path_factory.mktemp("control")
    with EtcdServer(folder / "etcd", folder / "etcd.log", unsafe_no_fsync=True) as server:
        yield server


@pytest.fixture
def site(shared_etcd: EtcdServer) -> Iterator[Site]:
    """A job of its own on an empty board."""
    with Site(shared_etcd.endpoint) as site:
        yield site


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """One that a test may kill."""
    with EtcdServer(tmp_path / "etcd", tmp_path / "etcd.log", unsafe_no_fsync=True) as server:
        yield server
