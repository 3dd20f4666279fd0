"""A cluster whose network policies hold: what they refuse is refused, all else goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest

from tests.cluster import Cluster, ProgramFailed, until
from tests.cluster.pods import PORT, server

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

FETCH = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=2).read().decode())"


@pytest.fixture(scope="module")
def fenced(cluster_needs: None) -> Iterator[Cluster]:
    """A server on each of two nodes, and clients beside it and far from it."""
    with Cluster.up(f"fenced-{os.getpid()}", ["one", "two"], enforces_policies=True) as running:
        running.apply(server("web", "one"), server("near", "one"), server("far", "two"))
        for name in ("web", "near", "far"):
            running.wait_pod(name)
        yield running


def reaches(cluster: Cluster, name: str, url: str) -> bool:
    try:
        cluster.exec(name, "python3", "-c", FETCH, url)
    except ProgramFailed as error:
        if not any(words in str(error) for words in ("URLError", "timed out")):
            raise  # it could not even try
        return False
    return True


def is_refused(cluster: Cluster, name: str, url: str) -> bool:
    return not reaches(cluster, name, url)


def test_what_a_policy_refuses_is_refused_near_and_far(fenced: Cluster) -> None:
    ports = [{"port": 80, "targetPort": PORT}]
    spec = {"selector": {"app": "web"}, "ports": ports}
    fenced.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
    address = fenced.wait_pod("web")["status"]["podIP"]
    ways = [f"http://{address}:{PORT}/", "http://web.default.svc.cluster.local/"]
    for name in ("near", "far"):
        for url in ways:
            until(f"{name} to reach {url}", partial(reaches, fenced, name, url), bound_s=20)
    friend = {"podSelector": {"matchLabels": {"app": "far"}}}
    policy = {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [friend]}]}
    metadata = {"name": "web", "namespace": "default"}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata}
    fenced.apply({**kind, "spec": policy})
    for url in ways:
        until("near to be refused", partial(is_refused, fenced, "near", url), bound_s=20)
        assert reaches(fenced, "far", url)


def test_a_node_that_joins_enforces_them_too(fenced: Cluster) -> None:
    fenced.add_node("three")
    fenced.apply(server("late", "three"))
    late = fenced.wait_pod("late")["status"]["podIP"]
    assert reaches(fenced, "near", f"http://{late}:{PORT}/")
    metadata = {"name": "late", "namespace": "default"}
    kind = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata}
    fenced.apply({**kind, "spec": {"podSelector": {"matchLabels": {"app": "late"}}}})
    until(
        "near to be refused",
        partial(is_refused, fenced, "near", f"http://{late}:{PORT}/"),
        bound_s=20,
    )
