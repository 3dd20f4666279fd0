"""Services and DNS: one kube-proxy and one CoreDNS, in the cluster's network namespace.

All pods' default route leads there, so one kube-proxy that masquerades serves every node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from .api import Api, healthy
from .debs import Unpacked
from .layout import DNS_SERVICE, GATEWAY, METADATA, ClusterFiles
from .namespaces import Network
from .processes import Process
from .waiting import until

PROXY_HEALTH_PORT = 10256
DNS_READY_PORT = 8181
STAND_IN = "kube-proxy-stand-in"


def proxy_config(kubeconfig: Path) -> str:
    """Returns kube-proxy's settings."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "bindAddress": GATEWAY,
            "hostnameOverride": STAND_IN,
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "nftables": {"masqueradeAll": True, "syncPeriod": "10s", "minSyncPeriod": "100ms"},
            "conntrack": {"maxPerCore": 0},
            "healthzBindAddress": f"127.0.0.1:{PROXY_HEALTH_PORT}",
            "metricsBindAddress": "127.0.0.1:10249",
        },
        sort_keys=False,
    )


def dns_config(kubeconfig: Path) -> str:
    """Returns the Corefile. Short lives, so that tests see changes at once."""
    return f"""\
.:53 {{
    bind {DNS_SERVICE} {GATEWAY}
    ready 127.0.0.1:{DNS_READY_PORT}
    errors
    hosts {{
        {METADATA} metadata.google.internal
        ttl 1
        fallthrough
    }}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig} test
        ttl 1
    }}
    cache 1
}}
"""


@dataclass(frozen=True)
class Services:
    """The two processes.

    Args:
        files: the cluster's folder.
        network: the cluster's network namespace.
        api: a client of the API server.
        kube_proxy: kube-proxy's program.
        coredns: CoreDNS's program.
        packages: where ``nft`` is.
    """

    files: ClusterFiles
    network: Network
    api: Api
    kube_proxy: Path
    coredns: Path
    packages: Unpacked

    @property
    def proxy(self) -> Process:
        """The process of kube-proxy."""
        return Process(self.files.pids / "kube-proxy.pid", self.files.logs / "kube-proxy.log")

    @property
    def dns(self) -> Process:
        """The process of CoreDNS."""
        return Process(self.files.pids / "coredns.pid", self.files.logs / "coredns.log")

    def up(self) -> None:
        """Starts both, and returns when Services and names work."""
        kubeconfig = self.files.kubeconfig("admin")
        proxy = self.files.folder / "kube-proxy.yaml"
        proxy.write_text(proxy_config(kubeconfig))
        corefile = self.files.folder / "Corefile"
        corefile.write_text(dns_config(kubeconfig))
        self.dns.start(self.network.argv([self.coredns, "-conf", corefile]))
        with self._stand_in():
            argv = self.packages.as_if_installed([self.kube_proxy, f"--config={proxy}"])
            self.proxy.start(self.network.argv(argv))
            self._wait("kube-proxy", self.proxy, PROXY_HEALTH_PORT, "/healthz")
        self._wait("CoreDNS", self.dns, DNS_READY_PORT, "/ready")

    def _wait(self, name: str, process: Process, port: int, path: str) -> None:
        until(
            f"{name} to be ready",
            lambda: healthy(self.network, port, path),
            bound_s=60,
            log=process.log,
            alive=process.alive,
        )

    @contextmanager
    def _stand_in(self) -> Iterator[None]:
        """Shows kube-proxy a Node of its own while it starts; it else waits for one for 30 s."""
        path = f"/api/v1/nodes/{STAND_IN}"
        self.api.create("/api/v1/nodes", {"kind": "Node", "metadata": {"name": STAND_IN}})
        addresses = [{"type": "InternalIP", "address": GATEWAY}]
        self.api.patch(f"{path}/status", {"status": {"addresses": addresses}})
        try:
            yield
        finally:
            self.api.delete(path)
