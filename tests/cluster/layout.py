"""Addresses, and where a cluster and its nodes keep their files. Pure.

Every cluster has network namespaces of its own, so all clusters use the same addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError
from .places import clusters, key

POD_NETWORK = "10.77.0.0/16"
GATEWAY = "10.77.0.1"
SERVICE_NETWORK = "10.0.0.0/24"
API_SERVICE = "10.0.0.1"
DNS_SERVICE = "10.0.0.10"
METADATA = "169.254.169.254"
API_PORT = 443
ETCD_PORT = 2379
MOST_NODES = 250

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?")


def valid(name: str, what: str) -> str:
    """Returns a name if it may be a node's or a cluster's.

    Raises:
        ClusterError: it is too long or holds something but small letters, digits and dashes.
    """
    if not _NAME.fullmatch(name):
        raise ClusterError(f"a {what}'s name is of a-z, 0-9 and -, at most 42: not {name!r}")
    return name


def node_address(number: int) -> str:
    """Returns the address of a node; its pods have the other addresses of its /24."""
    return f"10.77.{number}.1"


def hardware_address(number: int) -> str:
    """Returns a bridge's MAC address: 0 is the cluster's, others are nodes'.

    They are fixed because a bridge else takes the lowest of its ports': each node that came or went
    would cut all the others off the API server until their neighbour tables are renewed.
    """
    return f"02:00:0a:4d:{number:02x}:01"


@dataclass(frozen=True)
class ClusterFiles:
    """A cluster's folder and what is where in it."""

    name: str
    folder: Path

    @classmethod
    def of(cls, name: str) -> ClusterFiles:
        """Names the files of a cluster, which may or may not exist."""
        return cls(valid(name, "cluster"), clusters() / name)

    @property
    def settings(self) -> Path:
        """What the cluster was started with, and its owner."""
        return self.folder / "cluster.json"

    @property
    def keys(self) -> Path:
        """Keys and certificates."""
        return self.folder / "keys"

    @property
    def logs(self) -> Path:
        """Logs of the control plane."""
        return self.folder / "logs"

    @property
    def pids(self) -> Path:
        """Pid files of all processes but the nodes'."""
        return self.folder / "pids"

    @property
    def nodes(self) -> Path:
        """One folder for each node."""
        return self.folder / "nodes"

    @property
    def cgroup(self) -> str:
        """The cluster's cgroup, a path below every hierarchy's root.

        Cgroups are the machine's, so a cluster of the same name in another cache has another one.
        """
        return f"parcae-{self.name}-{key(str(self.folder))[:6]}"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of a user, for use inside the cluster's network."""
        return self.folder / f"{user}.kubeconfig"

    def node(self, name: str) -> NodeFiles:
        """Names the files of a node, which may or may not exist."""
        return NodeFiles(self, valid(name, "node"), self.nodes / name)


@dataclass(frozen=True)
class NodeFiles:
    """A node's folder and what is where in it."""

    cluster: ClusterFiles
    name: str
    folder: Path

    @property
    def varlib(self) -> Path:
        """What is /var/lib on the node: images, containers, pods' volumes."""
        return self.folder / "varlib"

    @property
    def settings(self) -> Path:
        """What the node was started with."""
        return self.folder / "node.json"

    @property
    def containerd(self) -> Path:
        """The settings of containerd."""
        return self.folder / "containerd.toml"

    @property
    def kubelet(self) -> Path:
        """The settings of the kubelet."""
        return self.folder / "kubelet.yaml"

    @property
    def network(self) -> Path:
        """The settings of the network plugins."""
        return self.folder / "pods.conflist"

    @property
    def kubeconfig(self) -> Path:
        """What the kubelet says who it is with."""
        return self.folder / "kubeconfig"

    @property
    def kubelet_log(self) -> Path:
        """What the kubelet says."""
        return self.folder / "kubelet.log"

    @property
    def cgroup(self) -> str:
        """The cgroup of all the node's pods."""
        return f"{self.cluster.cgroup}/{self.name}"
