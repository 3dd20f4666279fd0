"""One real API server, without nodes, for the tests of this folder that are marked ``cluster``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.cluster.fixtures import cluster_needs

from .api_server import JOBS, Server

__all__ = ["cluster_needs"]


@pytest.fixture(scope="package")
def crd_server(cluster_needs: None) -> Iterator[Server]:
    """It knows ParcaeJobs."""
    with Cluster.up(f"crd-{os.getpid()}", services=False) as cluster:
        server = Server(cluster.kubeconfig, cluster.site.tools.kubectl)
        server.install_crd()
        yield server
        server.close()


@pytest.fixture
def server(crd_server: Server) -> Iterator[Server]:
    """The same for all tests; each leaves it without jobs."""
    yield crd_server
    assert crd_server.send("DELETE", JOBS).ok
