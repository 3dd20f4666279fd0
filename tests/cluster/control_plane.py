"""Etcd, API server, controller manager, scheduler: how they are started, killed, started again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import keys
from .api import Api, healthy
from .heartbeats import Heartbeats
from .layout import API_PORT, ETCD_PORT, GATEWAY, SERVICE_NETWORK, ClusterFiles
from .namespaces import Network
from .processes import Process
from .waiting import until

Component = Literal["etcd", "apiserver", "controller-manager", "scheduler"]
COMPONENTS: tuple[Component, ...] = ("etcd", "apiserver", "controller-manager", "scheduler")

ETCD_PEER_PORT = 2380
MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
READY_BOUND_S = 120.0
# Without a cloud these controllers have nothing to do. The node lifecycle controller stays: it
# takes off the taint that every new node gets.
IDLE_CONTROLLERS = (
    "node-ipam-controller",
    "persistentvolume-attach-detach-controller",
    "bootstrap-signer-controller",
    "token-cleaner-controller",
    "cloud-node-lifecycle-controller",
    "node-route-controller",
    "service-lb-controller",
)


def etcd_argv(program: Path, folder: Path) -> list[str]:
    """Returns etcd's command. It does not wait for the disk: a killed process loses nothing."""
    client, peer = (f"http://127.0.0.1:{port}" for port in (ETCD_PORT, ETCD_PEER_PORT))
    return [
        str(program),
        "--name=test",
        f"--data-dir={folder}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=test={peer}",
        "--unsafe-no-fsync",
    ]


def apiserver_argv(program: Path, keys: Path) -> list[str]:
    """Returns the API server's command."""
    issuer = "https://kubernetes.default.svc"
    return [
        str(program),
        f"--etcd-servers=http://127.0.0.1:{ETCD_PORT}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={GATEWAY}",
        f"--secure-port={API_PORT}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--service-account-key-file={keys / 'tokens.pub'}",
        f"--service-account-signing-key-file={keys / 'tokens.key'}",
        f"--service-account-issuer={issuer}",
        f"--api-audiences={issuer}",
        f"--requestheader-client-ca-file={keys / 'ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={keys / 'front-proxy.crt'}",
        f"--proxy-client-key-file={keys / 'front-proxy.key'}",
        f"--kubelet-client-certificate={keys / 'admin.crt'}",
        f"--kubelet-client-key={keys / 'admin.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def manager_argv(program: Path, files: ClusterFiles, beats: Heartbeats) -> list[str]:
    """Returns the controller manager's command."""
    config = files.kubeconfig("controller-manager")
    return [
        str(program),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--authentication-tolerate-lookup-failure",
        "--bind-address=127.0.0.1",
        f"--secure-port={MANAGER_PORT}",
        f"--cert-dir={files.folder / 'controller-manager'}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={files.keys / 'tokens.key'}",
        f"--root-ca-file={files.keys / 'ca.crt'}",
        f"--cluster-signing-cert-file={files.keys / 'ca.crt'}",
        f"--cluster-signing-key-file={files.keys / 'ca.key'}",
        f"--node-monitor-period={beats.monitor_s}s",
        f"--node-monitor-grace-period={beats.grace_s}s",
        "--controllers=*," + ",".join(f"-{name}" for name in IDLE_CONTROLLERS),
    ]


def scheduler_argv(program: Path, files: ClusterFiles) -> list[str]:
    """Returns the scheduler's command."""
    config = files.kubeconfig("scheduler")
    return [
        str(program),
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--authentication-tolerate-lookup-failure",
        "--bind-address=127.0.0.1",
        f"--secure-port={SCHEDULER_PORT}",
        f"--cert-dir={files.folder / 'scheduler'}",
        "--leader-elect=false",
    ]


@dataclass(frozen=True)
class ControlPlane:
    """The four processes, all in the cluster's network namespace.

    Args:
        files: the cluster's folder.
        network: the cluster's network namespace.
        api: a client of the API server.
        kube: the folder of the built programs.
        beats: when a silent node counts as gone.
    """

    files: ClusterFiles
    network: Network
    api: Api
    kube: Path
    beats: Heartbeats

    def up(self) -> None:
        """Makes the keys and starts everything; returns when pods can be made."""
        keys.make_all(self.files.keys)
        for user in ("admin", "controller-manager", "scheduler"):
            text = keys.kubeconfig(
                self.files.keys, f"https://{GATEWAY}:{API_PORT}", self.files.keys / user
            )
            self.files.kubeconfig(user).write_text(text)
        self.start("etcd")
        self.wait_ready("etcd")
        self.start("apiserver")
        self.wait_ready("apiserver")
        self.start("controller-manager")
        self.start("scheduler")
        self.wait_ready("controller-manager")
        self.wait_ready("scheduler")
        until(
            "the default service account",
            lambda: self.api.find("/api/v1/namespaces/default/serviceaccounts/default"),
            bound_s=READY_BOUND_S,
            log=self.process("controller-manager").log,
        )

    def process(self, component: Component) -> Process:
        """The process of a component, with its log."""
        return Process(self.files.pids / f"{component}.pid", self.files.logs / f"{component}.log")

    def start(self, component: Component) -> None:
        """Starts a component; does not wait for it."""
        self.process(component).start(self.network.argv(self._argv(component)))

    def kill(self, component: Component) -> None:
        """Kills a component with SIGKILL; its connections break, its ports refuse."""
        self.process(component).kill()

    def restart(self, component: Component) -> None:
        """Kills a component (if it runs), starts it, and returns when it is ready."""
        self.kill(component)
        self.start(component)
        self.wait_ready(component)

    def wait_ready(self, component: Component, bound_s: float = READY_BOUND_S) -> None:
        """Returns when a component says that it is ready.

        Raises:
            WaitedInVain: it is not, or it died; with the end of its log.
        """
        process = self.process(component)
        until(
            f"{component} to be ready",
            self._probe(component),
            bound_s=bound_s,
            log=process.log,
            alive=process.alive,
        )

    def _probe(self, component: Component) -> Callable[[], bool]:
        match component:
            case "etcd":
                return lambda: healthy(self.network, ETCD_PORT, "/health")
            case "apiserver":
                return lambda: self.api.get("/readyz") == "ok"
            case "controller-manager":
                return lambda: healthy(self.network, MANAGER_PORT, "/healthz", https=True)
            case "scheduler":
                return lambda: healthy(self.network, SCHEDULER_PORT, "/healthz", https=True)

    def _argv(self, component: Component) -> list[str]:
        match component:
            case "etcd":
                return etcd_argv(self.kube / "etcd", self.files.folder / "etcd")
            case "apiserver":
                return apiserver_argv(self.kube / "kube-apiserver", self.files.keys)
            case "controller-manager":
                return manager_argv(self.kube / "kube-controller-manager", self.files, self.beats)
            case "scheduler":
                return scheduler_argv(self.kube / "kube-scheduler", self.files)
