"""Two clusters side by side; what one leaves on the machine: nothing, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import Cluster, ClusterError, cgroups, sweep, take_down, until
from tests.cluster.layout import ClusterFiles
from tests.cluster.places import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

START_AND_WAIT = """\
import sys, time
from tests.cluster import Cluster
cluster = Cluster.up(sys.argv[1], ["a"], services=False)
cluster.node("a").serve_metadata(
    [sys.executable, "-m", "http.server", "80", "--bind", "169.254.169.254"])
print("up", flush=True)
time.sleep(3600)
"""


def traces(files: ClusterFiles) -> dict[str, list[str]]:
    """What the machine knows of a cluster."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(files.folder) in command and int(folder.name) != os.getpid():
            processes.append(command)
    return {
        "processes": processes,
        "mounts": [
            line
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if str(files.folder) in line
        ],
        "cgroups": [
            str(root / files.cgroup)
            for root in cgroups.hierarchies()
            if (root / files.cgroup).exists()
        ],
        "files": [str(files.folder)] if files.folder.exists() else [],
    }


def networks() -> set[str]:
    """All network namespaces that some process is in."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(os.readlink(link))
        except OSError:
            continue
    return found


def test_a_second_cluster_disturbs_nobody_and_leaves_nothing(cluster: Cluster) -> None:
    name = f"{cluster.name}-second"
    files = ClusterFiles.of(name)
    argv = [sys.executable, "-c", START_AND_WAIT, name]
    owner = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        second = Cluster.attach(name)
        assert second.node("a").ready() == "True"
        assert {node["metadata"]["name"] for node in second.api.get("/api/v1/nodes")["items"]} == {
            "a"
        }
        assert cluster.node("one").ready() == "True"
        ours = {os.readlink(one.path) for one in (second.site.network, second.node("a").network)}
        assert ours <= networks()
        found = traces(files)
        assert found["processes"]  # the test looks in the right places
        assert found["cgroups"]
        assert found["mounts"] == []  # not even while it runs
        assert name not in sweep()  # its owner lives
        with pytest.raises(ClusterError, match="there is a cluster"):
            Cluster.up(name)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        if owner.stdout is not None:
            owner.stdout.close()
    assert second.node("a").ready() == "True"  # it outlives a killed owner, until somebody sweeps
    assert name in sweep()
    assert traces(files) == {"processes": [], "mounts": [], "cgroups": [], "files": []}
    until("its network namespaces to go", lambda: not ours & networks(), bound_s=10)
    assert cluster.node("one").ready() == "True"
    take_down(name)  # once more does no harm
