"""The cluster of the scenario, with Parcae installed, and the table at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from e2e_install import install
from e2e_proof import Undisturbed
from e2e_site import SPOT, Site
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import cluster_needs
from tests.cluster.node_config import NodeSpec
from tests.preparation import build_images

__all__ = ["cluster_needs"]

_sites: list[Site] = []


@pytest.fixture(scope="module")
def site(cluster_needs: None) -> Iterator[Site]:
    """Four spot nodes and one that stays, for what must not be preempted.

    They end with the scenario, also where it fails, so that nothing of it slows the tests after it.
    PARCAE_E2E_KEEP=1 leaves them up, to look at what happened; PARCAE_E2E_CLUSTER=NAME goes on with
    one that was left, its job included.
    """
    left = os.environ.get("PARCAE_E2E_CLUSTER")
    if left:
        site = Site(Cluster.attach(left), Path("/"))
        [volume] = site.get()["spec"]["template"]["spec"]["volumes"]
        site.stage = Path(volume["hostPath"]["path"])
        _sites.append(site)
        yield site
        return
    kept = bool(os.environ.get("PARCAE_E2E_KEEP"))
    stage = Path(tempfile.mkdtemp(prefix="parcae-e2e-"))
    for folder in (stage, stage / "ledger", stage / "checkpoints"):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    specs = [NodeSpec("safe", {"parcae.dev/pool": "safe"})]
    specs += [
        NodeSpec(f"spot-{n}", SPOT, provider_id=f"aws:///zone-a/spot-{n}") for n in range(1, 5)
    ]
    try:
        cluster = Cluster.up(f"e2e-{os.getpid()}", specs, archives=build_images(), kept=kept)
        with nullcontext() if kept else cluster:
            site = Site(cluster, stage)
            _sites.append(site)
            for node in cluster.nodes:
                if node.name != "safe":
                    site.serve_metadata(node)
            install(site)
            yield site
    finally:
        if not kept:
            shutil.rmtree(stage, ignore_errors=True)


@pytest.fixture(scope="module")
def undisturbed(site: Site) -> Iterator[Undisturbed]:
    """The scenario waits most of the time: it trains meanwhile, for the comparison at the end."""
    program = Undisturbed(site.manifest()["spec"]["entrypoint"]["args"])
    yield program
    program.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.failed and _sites:  # type: ignore[attr-defined]
        _sites[0].broken = _sites[0].broken or item.name
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [row for site in _sites for row in site.rows]
    if not rows:
        return
    terminalreporter.section("the scenario in figures")
    width = max(len(row.what) for row in rows)
    for row in rows:
        target = f"(target {row.target})" if row.target else ""
        terminalreporter.write_line(f"{row.what:<{width}}  {row.measured:>10}  {target}")
