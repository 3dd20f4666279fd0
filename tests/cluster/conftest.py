"""Fixtures for the tests of the test cluster itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cluster import Cluster
from .fixtures import cluster, cluster_needs
from .node import Node
from .pods import server

__all__ = ["cluster", "cluster_needs", "spare", "web"]


@pytest.fixture
def spare(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node of this test alone, to lose; whatever is left of it goes away."""
    name = f"spare-{cluster.site.files.folder.joinpath('next-number').read_text()}"
    node = cluster.add_node(name, {"parcae.test/pool": "spare"})
    yield node
    if node.files.folder.exists():
        node.remove(collect_pods=True)


@pytest.fixture(scope="package")
def web(cluster: Cluster) -> dict[str, str]:
    """A web server's pod on each of two nodes: the address of the pod named after it."""
    names = {"web-one": "one", "web-two": "two"}
    cluster.apply(*(server(name, node) for name, node in names.items()))
    return {name: str(cluster.wait_pod(name)["status"]["podIP"]) for name in names}
