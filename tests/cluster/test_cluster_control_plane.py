"""The control plane's programs are killed and come back; what they knew is still known."""

from __future__ import annotations

import pytest

from tests.cluster import ApiError, Cluster, until
from tests.cluster.pods import pod

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

FORGET = ["python3", "-c", "import time; time.sleep(3600)"]
NODES = ("one", "two", "three")


def note(name: str) -> dict[str, object]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": name}}


@pytest.mark.parametrize("component", ["apiserver", "etcd"])
def test_what_was_written_outlives_a_killed_server(cluster: Cluster, component: str) -> None:
    plane = cluster.control_plane
    path = f"/api/v1/namespaces/default/configmaps/{component}"
    cluster.apply(note(component))
    uid = cluster.api.get(path)["metadata"]["uid"]
    if component == "apiserver":
        plane.kill("apiserver")
        with pytest.raises(ApiError) as caught:
            cluster.api.get(path)
        assert caught.value.status == 0
        plane.restart("apiserver")
    else:
        plane.kill("etcd")
        plane.restart("etcd")
        plane.wait_ready("apiserver")
    assert cluster.api.get(path)["metadata"]["uid"] == uid
    for name in NODES:
        cluster.node(name).wait_ready()
    cluster.apply(pod(f"after-{component}", FORGET))
    cluster.wait_pod(f"after-{component}")


def test_without_a_scheduler_pods_wait(cluster: Cluster) -> None:
    cluster.control_plane.kill("scheduler")
    cluster.apply(pod("waiting", FORGET))
    path = "/api/v1/namespaces/default/pods/waiting"
    assert "nodeName" not in cluster.api.get(path)["spec"]
    cluster.control_plane.restart("scheduler")
    cluster.wait_pod("waiting")


def test_without_a_controller_manager_nothing_is_collected(cluster: Cluster) -> None:
    cluster.control_plane.kill("controller-manager")
    cluster.kubectl("create", "namespace", "late")
    path = "/api/v1/namespaces/late/serviceaccounts/default"
    assert cluster.api.find(path) is None
    cluster.control_plane.restart("controller-manager")
    until("the late service account", lambda: cluster.api.find(path), bound_s=60)
