"""Pytest fixtures of the test cluster, for any folder of tests::

# conftest.py
from tests.cluster.fixtures import cluster, cluster_needs

# test_….py
pytestmark = pytest.mark.cluster

def test_it(cluster: Cluster) -> None: ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from . import debs, images, needs, stores, toolchain
from .cluster import Cluster
from .node_config import NodeSpec
from .take_down import sweep

NODES = ("one", "two", "three")


def prepare() -> None:
    """Builds and downloads all that a cluster needs, where that was not done.

    Call it before the first test, whose time limit a cold build would not keep.
    """
    toolchain.ensure()
    debs.ensure()
    stores.ensure([images.pause(), images.python()])


@pytest.fixture(scope="session")
def cluster_needs() -> None:
    """Skips, and says why, where a cluster cannot run."""
    if missing := needs.missing():
        pytest.skip(f"cluster: {'; '.join(missing)}")
    sweep()


@pytest.fixture(scope="package")
def cluster(cluster_needs: None) -> Iterator[Cluster]:
    """A cluster of three nodes for all tests of a folder: they leave those three as they are.

    It ends with that folder's last test, so that no idle cluster slows the rest of the session. The
    folder needs an ``__init__.py``: of others pytest knows no end but the session's.
    """
    specs = [NodeSpec(name, {"parcae.test/zone": name}) for name in NODES]
    with Cluster.up(f"test-{os.getpid()}", specs) as running:
        yield running
