"""What the programs of a node and of the control plane are told."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.cluster import Heartbeats, NodeSpec, Taint, archive, keys, node_config, services
from tests.cluster.control_plane import apiserver_argv, etcd_argv, manager_argv
from tests.cluster.errors import ClusterError
from tests.cluster.layout import ClusterFiles, hardware_address, node_address

FILES = ClusterFiles("mine", Path("/cache/clusters/mine"))
SPEC = NodeSpec("a", {"pool": "spot"}, [Taint("spot", "true", "NoExecute")], "gce://p/z/a")


def test_the_kubelet_is_told_who_it_is_and_how_fast_to_report() -> None:
    data = yaml.safe_load(node_config.kubelet(FILES.node("a"), SPEC, Heartbeats(3, 9, 14)))
    assert data["providerID"] == "gce://p/z/a"
    assert data["nodeStatusUpdateFrequency"] == "3s"
    assert data["nodeLeaseDurationSeconds"] == 9
    assert data["cgroupRoot"] == f"/{FILES.cgroup}/a"
    assert data["authentication"]["x509"]["clientCAFile"] == "/cache/clusters/mine/keys/ca.crt"


def test_a_kubelet_without_provider_says_nothing_of_one() -> None:
    text = node_config.kubelet(FILES.node("b"), NodeSpec("b"), Heartbeats())
    assert "providerID" not in yaml.safe_load(text)


def test_labels_and_taints_are_registered() -> None:
    argv = node_config.kubelet_argv(Path("/bin/kubelet"), FILES.node("a"), SPEC, 7)
    assert "--node-labels=pool=spot" in argv
    assert "--register-with-taints=spot=true:NoExecute" in argv
    assert "--node-ip=10.77.7.1" in argv


def test_a_node_is_read_as_it_was_written() -> None:
    again = NodeSpec.from_json(json.loads(json.dumps(SPEC.to_json())))
    assert again == SPEC


def test_containerd_keeps_to_its_own_mounts() -> None:
    text = node_config.containerd("pause:1", Path("/cni"), Path("/runc"))
    cri = tomllib.loads(text)["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["netns_mounts_under_state_dir"] is True
    assert cri["sandbox_image"] == "pause:1"
    assert cri["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/runc"


def test_pods_of_two_nodes_have_addresses_apart_and_their_own_metadata() -> None:
    ranges = set()
    for number in (1, 2):
        [bridge] = json.loads(node_config.network(number))["plugins"]
        ranges.add(bridge["ipam"]["ranges"][0][0]["rangeStart"])
        routes = {route["dst"]: route.get("gw") for route in bridge["ipam"]["routes"]}
        assert routes["169.254.169.254/32"] == node_address(number)
    assert len(ranges) == 2


def test_bridges_have_fixed_and_different_hardware_addresses() -> None:
    assert len({hardware_address(number) for number in range(251)}) == 251


def test_nothing_of_the_control_plane_leaves_the_namespace() -> None:
    assert "--listen-client-urls=http://127.0.0.1:2379" in etcd_argv(Path("etcd"), Path("/data"))
    assert "--advertise-address=10.77.0.1" in apiserver_argv(Path("api"), Path("/keys"))
    beats = Heartbeats(grace_s=33)
    assert "--node-monitor-grace-period=33s" in manager_argv(Path("kcm"), FILES, beats)


def test_the_node_lifecycle_controller_runs() -> None:
    [controllers] = [
        word
        for word in manager_argv(Path("kcm"), FILES, Heartbeats())
        if word.startswith("--controllers=")
    ]
    assert controllers.startswith("--controllers=*,")
    assert "lifecycle" not in controllers.replace("-cloud-node-lifecycle-controller", "")


def test_clusters_of_one_name_in_two_caches_have_cgroups_apart() -> None:
    other = ClusterFiles("mine", Path("/elsewhere/clusters/mine"))
    assert other.cgroup != FILES.cgroup


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a-", "../x", "a" * 43, "a\n"])
def test_names_that_would_not_work_are_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="name"):
        ClusterFiles.of(name)
    with pytest.raises(ClusterError, match="name"):
        FILES.node(name)


def test_a_kubeconfig_points_to_its_server() -> None:
    data = yaml.safe_load(keys.kubeconfig(Path("/k"), "https://127.0.0.1:1", Path("/k/admin")))
    assert data["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"
    assert data["users"][0]["user"]["client-key"] == "/k/admin.key"


def test_services_and_names() -> None:
    config = yaml.safe_load(services.proxy_config(Path("/kubeconfig")))
    assert config["mode"] == "nftables"
    assert config["nftables"]["masqueradeAll"] is True
    assert "kubeconfig /kubeconfig test" in services.dns_config(Path("/kubeconfig"))


def test_an_image_of_one_program_is_the_same_every_time(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(b"\x7fELF")
    assert archive.one_program(program, "a:1") == archive.one_program(program, "a:1")
    assert archive.one_program(program, "a:1") != archive.one_program(program, "a:2")
