"""The cluster's wires: a bridge that all nodes hang on, and each node's cable to it.

Nodes and pods are on one flat network: a node's bridge is plugged into the cluster's, so pods of
all nodes reach one another, and the API server, with no route, no rule and no masquerade.
"""

from __future__ import annotations

from pathlib import Path

from .layout import (
    API_SERVICE,
    DNS_SERVICE,
    GATEWAY,
    METADATA,
    SERVICE_NETWORK,
    hardware_address,
    node_address,
)
from .namespaces import Network

_SETTINGS = [
    "net.ipv4.ip_forward=1",
    "net.ipv4.conf.all.send_redirects=0",
    "net.ipv4.conf.br0.send_redirects=0",
    # Else a Service's answer from a pod behind the same port is bridged, not translated, and lost.
    "net.bridge.bridge-nf-call-iptables=0",
]


INOTIFY_INSTANCES = 8192


def raise_limits() -> None:
    """Lets root have enough inotify instances for many kubelets; the usual 128 do for ten nodes.

    The one setting of the machine that a cluster changes: a kubelet that gets none exits.
    """
    limit = Path("/proc/sys/fs/inotify/max_user_instances")
    if int(limit.read_text()) < INOTIFY_INSTANCES:
        limit.write_text(str(INOTIFY_INSTANCES))


def build(cluster: Network) -> None:
    """Makes the cluster's network namespace with its bridge and the API server's addresses."""
    cluster.make()
    cluster.ip(
        f"link add br0 address {hardware_address(0)} type bridge",
        f"addr add {GATEWAY}/16 dev br0",
        f"addr add {API_SERVICE}/32 dev br0",
        f"addr add {DNS_SERVICE}/32 dev br0",
        "link set br0 up",
        f"route add {SERVICE_NETWORK} dev br0 src {GATEWAY}",
    )
    cluster.run(["sysctl", "-e", "-q", "-w", *_SETTINGS])


def plug(cluster: Network, node: Network, number: int) -> None:
    """Makes a node's network namespace and its cable; the metadata address is on the node."""
    node.make()
    cluster.ip(
        f"link add {_cable(number)} type veth peer name up0 netns {node.holder.pid}",
        f"link set {_cable(number)} master br0 up",
    )
    node.ip(
        f"link add cni0 address {hardware_address(number)} type bridge",
        "link set up0 master cni0 up",
        f"addr add {node_address(number)}/16 dev cni0",
        f"addr add {METADATA}/32 dev cni0",
        "link set cni0 up",
        f"route add default via {GATEWAY}",
    )


def cut(cluster: Network, number: int) -> None:
    """Takes a node's cable down: nothing gets in or out, and nobody is told."""
    cluster.ip(f"link set {_cable(number)} down")


def mend(cluster: Network, number: int) -> None:
    """Takes a node's cable up again."""
    cluster.ip(f"link set {_cable(number)} up")


def unplug(cluster: Network, number: int) -> None:
    """Removes a node's cable; does nothing where there is none."""
    cluster.ip(f"link del {_cable(number)}", check=False)


def _cable(number: int) -> str:
    return f"node{number}"
