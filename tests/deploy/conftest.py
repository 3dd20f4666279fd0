"""A small cluster with Parcae on it, as ``make deploy`` puts it there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster import Cluster, NodeSpec
from tests.cluster.fixtures import cluster_needs
from tests.deploy.install import install
from tests.preparation import build_images

__all__ = ["cluster_needs"]

SPOT = {"cloud.google.com/gke-spot": "true"}


@pytest.fixture(scope="package")
def cluster(cluster_needs: None) -> Iterator[Cluster]:
    """Two nodes, one that stays and one on spot, started with the images, which takes no disk."""
    nodes = [NodeSpec("safe"), NodeSpec("spot-1", SPOT, provider_id="gce://test/zone-a/spot-1")]
    name, archives = f"deploy-{os.getpid()}", build_images()
    with Cluster.up(name, nodes, archives=archives, enforces_policies=True) as running:
        install(running)
        yield running
