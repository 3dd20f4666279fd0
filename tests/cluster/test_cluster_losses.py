"""The ways in which a node is lost: without a sound, with one, for a while, for good."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from tests.cluster import Cluster, Node, cgroups, until
from tests.cluster.pods import PORT, pod, server

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def connection(cluster: Cluster, spare: Node) -> socket.socket:
    """An open connection to a pod on the node that will be lost."""
    name = f"web-{spare.name}"
    cluster.apply(server(name, spare.name))
    address = cluster.wait_pod(name)["status"]["podIP"]
    opened = cluster.site.network.socket()
    opened.settimeout(2)
    opened.connect((address, PORT))
    return opened


def ended(connection: socket.socket) -> bool:
    """Says whether the other side ended a connection; a silent one says nothing for 2 s."""
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


def machine_processes(node: Node) -> set[int]:
    """All processes in the node's network namespace, or of its pods."""
    listed = node.inside(["ps", "-e", "-o", "comm="]).stdout.split()
    assert "kubelet" in listed
    assert "containerd" in listed
    return cgroups.processes(node.files.cgroup)


def test_a_killed_node_says_nothing_and_is_missed_later(
    cluster: Cluster, spare: Node, connection: socket.socket
) -> None:
    pods = machine_processes(spare)
    uid = cluster.api.get(spare.path)["metadata"]["uid"]
    spare.kill()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pods)
    assert not ended(connection)
    assert cluster.api.get(spare.path)["metadata"]["uid"] == uid
    assert spare.ready() == "True"
    spare.wait_not_ready()
    assert not spare.alive()
    assert [one["metadata"]["name"] for one in spare.pods()] == [f"web-{spare.name}"]


def test_a_crashed_node_breaks_its_connections(
    cluster: Cluster, spare: Node, connection: socket.socket
) -> None:
    spare.crash()
    assert ended(connection)
    assert not spare.alive()
    assert spare.get() is not None


def test_a_cut_node_comes_back_with_its_pods(
    cluster: Cluster, spare: Node, connection: socket.socket
) -> None:
    name = f"web-{spare.name}"
    before = cluster.api.get(f"/api/v1/namespaces/default/pods/{name}")
    spare.cut()
    assert not ended(connection)
    spare.wait_not_ready()
    assert spare.alive()
    spare.mend()
    spare.wait_ready()
    after = cluster.wait_pod(name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"][0]["restartCount"] == 0


def test_a_removed_node_is_gone_with_its_object(cluster: Cluster, spare: Node) -> None:
    cluster.apply(server("leaving", spare.name))
    cluster.wait_pod("leaving")
    spare.remove(collect_pods=True)
    assert spare.get() is None
    assert spare.name not in {node.name for node in cluster.nodes}
    assert cluster.api.find("/api/v1/namespaces/default/pods/leaving") is None
    assert not spare.files.folder.exists()


def test_a_node_that_is_shut_down_tells_its_containers(
    cluster: Cluster, spare: Node, tmp_path: Path
) -> None:
    code = (
        "import signal, time; from pathlib import Path\n"
        "def told(*_):\n"
        "    Path('/told/now').touch(); raise SystemExit\n"
        "signal.signal(signal.SIGTERM, told); Path('/told/up').touch(); time.sleep(3600)"
    )
    listening = pod("told", ["python3", "-c", code], node=spare.name)
    listening["spec"]["volumes"] = [{"name": "told", "hostPath": {"path": str(tmp_path)}}]
    listening["spec"]["containers"][0]["volumeMounts"] = [{"name": "told", "mountPath": "/told"}]
    cluster.apply(listening)
    cluster.wait_pod("told")
    until("the handler to be set", (tmp_path / "up").exists, bound_s=20)
    start_s = time.monotonic()
    spare.shut_down(grace_s=20)
    assert time.monotonic() - start_s < 15  # it did not take all of its grace
    assert (tmp_path / "now").exists()
    assert not spare.alive()


def test_a_killed_kubelet_is_started_again(spare: Node) -> None:
    pid = spare.inside(["cat", "/run/kubelet.pid"]).stdout
    spare.inside(["kill", "-9", pid])
    until(
        "another kubelet",
        lambda: spare.inside(["cat", "/run/kubelet.pid"]).stdout not in ("", pid),
        bound_s=30,
    )
    spare.wait_ready()


def test_a_lost_node_leaves_the_others_ready(cluster: Cluster, spare: Node) -> None:
    """A bridge whose address changes with its ports would cut the others off for seconds."""
    seen = cluster.start_inside(
        f"watch-{spare.name}",
        [cluster.site.tools.kubectl, "get", "nodes", "--watch", "-o", "json"],
    )
    until("the watch to begin", lambda: seen.log.stat().st_size > 0, bound_s=20, alive=seen.alive)
    cluster.add_node(f"{spare.name}-b").remove()
    spare.crash()
    for name in ("one", "two", "three"):
        assert cluster.node(name).ready() == "True"
    seen.stop()
    decoder, text, others = json.JSONDecoder(), seen.log.read_text(), []
    while text := text.lstrip():
        try:
            node, end = decoder.raw_decode(text)
        except json.JSONDecodeError:
            break  # the last one was cut off
        text = text[end:]
        ready = [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"]
        if node["metadata"]["name"] in ("one", "two", "three"):
            others.append(ready)
    assert others
    assert all(ready == ["True"] for ready in others)
