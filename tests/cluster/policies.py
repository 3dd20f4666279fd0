"""Network policies that hold: a kube-proxy and a kube-router on each node, as clusters have them.

The one kube-proxy that else serves all nodes sits behind them, so a node would see a Service where
a policy means its pods, and a gateway where it means a client. Here each node translates Services
itself, before its firewall looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from . import debs, toolchain
from .api import healthy
from .layout import DNS_SERVICE, GATEWAY, SERVICE_NETWORK, ClusterFiles
from .node import Node
from .processes import Process
from .services import PROXY_HEALTH_PORT, proxy_config
from .waiting import until

_HEALTH_PORT = 20244
_PROGRAMS = ("iptables", "iptables-save", "iptables-restore")
_SETTINGS = [
    # Else a packet whose address was translated on the bridge is lost there.
    "net.ipv4.ip_forward=1",
    "net.ipv4.conf.all.send_redirects=0",
    "net.ipv4.conf.cni0.send_redirects=0",
    "net.bridge.bridge-nf-call-iptables=1",
]


def prepare() -> None:
    """Builds and downloads what is needed, where that was not done (minutes when cold)."""
    toolchain.kube_router()
    debs.ensure(debs.FIREWALL)


def dns_service() -> list[dict[str, Any]]:
    """A Service for the names' address: a node's kube-proxy refuses what is of no Service."""
    ports = [("dns", "UDP"), ("dns-tcp", "TCP")]
    listed = [{"name": name, "port": 53, "protocol": protocol} for name, protocol in ports]
    name = {"name": "kube-dns", "namespace": "kube-system"}
    labels = {"kubernetes.io/service-name": name["name"]}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**name, "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [GATEWAY]}],
        "ports": listed,
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": name,
        "spec": {"clusterIP": DNS_SERVICE, "ports": listed},
    }
    return [endpoints, service]  # a Service without endpoints would refuse all names meanwhile


@dataclass(frozen=True)
class Enforcement:
    """What a cluster's nodes are given so that policies hold."""

    files: ClusterFiles
    kube_proxy: Path

    def start(self, node: Node) -> None:
        """Starts both programs on a node that is Ready; returns when its policies hold."""
        node.run_inside_network(["sysctl", "-e", "-q", "-w", *_SETTINGS])
        proxy = node.start_inside_network("kube-proxy", self._proxy(node))
        router = node.start_inside_network("kube-router", self._router(node))
        self._wait(node, proxy, PROXY_HEALTH_PORT)
        self._wait(node, router, _HEALTH_PORT)

    def _proxy(self, node: Node) -> list[str]:
        data = yaml.safe_load(proxy_config(self.files.kubeconfig("admin")))
        data |= {"bindAddress": node.address, "hostnameOverride": node.name}
        data["nftables"]["masqueradeAll"] = False
        file = node.files.folder / "kube-proxy.yaml"
        file.write_text(yaml.safe_dump(data))
        return node.site.packages.as_if_installed([self.kube_proxy, f"--config={file}"])

    def _router(self, node: Node) -> list[str]:
        folder = self.files.folder / "firewall"
        folder.mkdir(exist_ok=True)
        for name in _PROGRAMS:
            for program in (name, name.replace("iptables", "ip6tables")):
                if not (link := folder / program).is_symlink():
                    link.symlink_to("/usr/sbin/xtables-nft-multi")
        argv: list[str | Path] = [
            "env",
            f"PATH={folder}:/usr/sbin:/usr/bin:/sbin:/bin",
            toolchain.kube_router(),
            f"--kubeconfig={self.files.kubeconfig('admin')}",
            f"--hostname-override={node.name}",
            "--run-firewall=true",
            "--run-router=false",
            "--run-service-proxy=false",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            f"--health-port={_HEALTH_PORT}",
            "--metrics-port=0",
        ]
        return debs.ensure(debs.FIREWALL).as_if_installed(argv)

    @staticmethod
    def _wait(node: Node, process: Process, port: int) -> None:
        until(
            f"{process.file.stem} of {node.name} to be ready",
            lambda: healthy(node.network, port, "/healthz"),
            bound_s=60,
            log=process.log,
            alive=process.alive,
        )
