"""What a node's containerd, network plugins and kubelet are told. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .heartbeats import Heartbeats
from .layout import (
    DNS_SERVICE,
    GATEWAY,
    METADATA,
    POD_NETWORK,
    NodeFiles,
    node_address,
)


@dataclass(frozen=True)
class Taint:
    """A taint, as in ``Taint("spot", "true", "NoSchedule")``."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}"


@dataclass(frozen=True)
class NodeSpec:
    """A node to be.

    Args:
        name: the Node object's name. A name that was used before meets the old node's pods, so
            give a replacement a fresh one.
        labels: what it registers with.
        taints: what it registers with.
        provider_id: its ``spec.providerID``, as in ``gce://project/zone/instance``.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    provider_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON data."""
        return {
            "name": self.name,
            "labels": dict(self.labels),
            "taints": [asdict(taint) for taint in self.taints],
            "provider_id": self.provider_id,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NodeSpec:
        """Reads what ``to_json`` made."""
        taints = [Taint(**taint) for taint in data["taints"]]
        return cls(data["name"], data["labels"], taints, data["provider_id"])


def containerd(pause_image: str, cni: Path, runc: Path) -> str:
    """Returns containerd's settings: all its paths are the usual ones, in the node's own mounts."""
    unused = ["snapshotter.v1.btrfs", "snapshotter.v1.zfs", "snapshotter.v1.aufs"]
    unused += ["snapshotter.v1.devmapper", "internal.v1.opt", "tracing.processor.v1.otlp"]
    disabled = json.dumps([f"io.containerd.{name}" for name in unused])
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = {disabled}
[grpc]
address = "/run/containerd/containerd.sock"
[{cri}]
sandbox_image = "{pause_image}"
# Else pods' network namespaces would be mounted where all nodes' are.
netns_mounts_under_state_dir = true
enable_unprivileged_ports = true
# A root without CAP_SYS_RESOURCE cannot make a process dearer to the OOM killer than itself.
restrict_oom_score_adj = true
[{cri}.cni]
bin_dir = "{cni}"
conf_dir = "/run/cni"
[{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false
"""


def network(number: int) -> str:
    """Returns the CNI settings: pods are ports of the node's bridge, on one flat network.

    The metadata address leads to the node itself; everything else is direct or by the gateway.
    """
    ranges = {
        "subnet": POD_NETWORK,
        "rangeStart": f"10.77.{number}.10",
        "rangeEnd": f"10.77.{number}.250",
        "gateway": GATEWAY,
    }
    routes = [{"dst": "0.0.0.0/0"}, {"dst": f"{METADATA}/32", "gw": node_address(number)}]
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": False,
        "ipMasq": False,
        "mtu": 1500,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni-ipam",
            "ranges": [[ranges]],
            "routes": routes,
        },
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}, indent=1)


def kubelet(node: NodeFiles, spec: NodeSpec, beats: Heartbeats) -> str:
    """Returns the KubeletConfiguration."""
    never = {"nodefs.available": "0%", "nodefs.inodesFree": "0%"}
    never |= {"imagefs.available": "0%", "imagefs.inodesFree": "0%"}
    data: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(node.cluster.keys / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        # Where there is no registry, an image that is collected is gone for good.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", **never},
        "nodeStatusUpdateFrequency": f"{beats.status_s}s",
        "nodeLeaseDurationSeconds": beats.lease_s,
        "syncFrequency": "10s",
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_SERVICE],
        "serializeImagePulls": False,
    }
    if spec.provider_id:
        data["providerID"] = spec.provider_id
    return yaml.safe_dump(data, sort_keys=False)


def kubelet_argv(program: Path, node: NodeFiles, spec: NodeSpec, number: int) -> list[str]:
    """Returns the kubelet's command."""
    argv = [
        str(program),
        f"--config={node.kubelet}",
        f"--kubeconfig={node.kubeconfig}",
        f"--hostname-override={node.name}",
        f"--node-ip={node_address(number)}",
        "--root-dir=/var/lib/kubelet",
        f"--cert-dir={node.folder / 'serving'}",
        "--v=2",
    ]
    if spec.labels:
        argv.append("--node-labels=" + ",".join(f"{k}={v}" for k, v in spec.labels.items()))
    if spec.taints:
        argv.append("--register-with-taints=" + ",".join(map(str, spec.taints)))
    return argv
