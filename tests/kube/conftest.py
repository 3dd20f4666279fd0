"""A real etcd for the operator's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from parcae_cli.etcd_server import EtcdServer


@pytest.fixture(scope="session")
def kube_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    folder = tmp_path_factory.mktemp("kube")
    with EtcdServer(folder / "etcd", folder / "etcd.log", unsafe_no_fsync=True) as server:
        yield server


@pytest.fixture
def mortal_etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    """One that a test may kill."""
    with EtcdServer(tmp_path / "etcd", tmp_path / "etcd.log", unsafe_no_fsync=True) as server:
        yield server
