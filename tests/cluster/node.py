"""A node: a machine with a kubelet, how it is started, and all the ways in which it can be lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from subprocess import CompletedProcess

from . import cgroups, keys, network, node_config, stores
from .errors import WaitedInVain
from .layout import API_PORT, GATEWAY, METADATA, NodeFiles, node_address
from .machine import Machine
from .namespaces import Network
from .node_config import NodeSpec
from .node_object import NodeObject
from .processes import Process, started_ticks
from .site import Site
from .waiting import until

METADATA_PORT = 80


class Node(NodeObject):
    """A node of a cluster. Made by ``Cluster.add_node`` and ``Cluster.node``.

    Verbs that act on its machine are here; those that act through the API server (``cordon``,
    ``drain``, ``taint``, ``condition``, ``wait_ready``, …) are ``NodeObject``'s.
    """

    def __init__(self, site: Site, spec: NodeSpec, number: int) -> None:
        self.site = site
        self.spec = spec
        self.number = number
        self.files: NodeFiles = site.files.node(spec.name)
        super().__init__(site.api, spec.name, self.files.kubelet_log)

    @property
    def address(self) -> str:
        """Its InternalIP."""
        return node_address(self.number)

    @property
    def machine(self) -> Machine:
        """Its namespaces and processes."""
        return Machine(self.files.folder, self.name, self.site.packages)

    @property
    def network(self) -> Network:
        """Its network namespace."""
        return self.machine.network

    def alive(self) -> bool:
        """Says whether its machine runs."""
        return self.machine.alive()

    def boot(self, store: Path) -> None:
        """Starts the machine with the images of a store; does not wait until it is Ready."""
        files = self.files
        files.folder.mkdir(parents=True)
        data = {"spec": self.spec.to_json(), "number": self.number}
        files.settings.write_text(json.dumps(data))
        stores.copy(store, files.varlib)
        authority = files.cluster.keys
        identity = files.folder / "identity"
        keys.client(authority, identity, f"/O=system:nodes/CN=system:node:{self.name}")
        server = f"https://{GATEWAY}:{API_PORT}"
        files.kubeconfig.write_text(keys.kubeconfig(authority, server, identity))
        files.network.write_text(node_config.network(self.number))
        files.kubelet.write_text(node_config.kubelet(files, self.spec, self.site.beats))
        cgroups.make(files.cgroup)
        network.plug(self.site.network, self.network, self.number)
        program = self.site.tools.kube / "kubelet"
        self.machine.start(node_config.kubelet_argv(program, files, self.spec, self.number))

    # How a machine is lost

    def kill(self) -> None:
        """Ends the machine without a sound, like a spot instance whose time is up.

        Its cable goes first, so no peer sees a FIN or RST: open connections hang. The Node object
        stays; it is NotReady after the cluster's ``grace_s``.
        """
        network.unplug(self.site.network, self.number)
        self._power_off()

    def crash(self) -> None:
        """Ends the machine while its cable is in: peers see their connections break at once."""
        self.machine.power_off()
        self._power_off()

    def cut(self) -> None:
        """Parts the node from all others; its pods run on. ``mend`` heals it."""
        network.cut(self.site.network, self.number)

    def mend(self) -> None:
        """Ends what ``cut`` began."""
        network.mend(self.site.network, self.number)

    def shut_down(self, grace_s: float) -> None:
        """Sends SIGTERM to all containers, and kills the machine when they ended or time is up.

        Like a machine whose power button is pressed and whose kubelet does not know: no pod is
        evicted, nothing is said to the API server.
        """
        self.machine.stop_program("kubelet", SIGKILL)
        firsts = [pid for pid in cgroups.processes(self.files.cgroup) if _first_of_container(pid)]
        for pid in firsts:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGTERM)
        with suppress(WaitedInVain):
            until(
                "containers to end",
                lambda: all(started_ticks(pid) is None for pid in firsts),
                bound_s=grace_s,
            )
        self.kill()

    def remove(self, *, collect_pods: bool = False) -> None:
        """Kills the machine, and its Node object and files go away with it, as in a cloud.

        Args:
            collect_pods: delete its pods' objects at once; Kubernetes does it about a minute later.
        """
        self.kill()
        self.delete_object()
        if collect_pods:
            self.collect_pods()
        shutil.rmtree(self.files.folder)

    # Programs on it

    def inside(
        self, argv: Sequence[str | Path], *, bound_s: float = 60, check: bool = True
    ) -> CompletedProcess[str]:
        """Runs a program in all the node's namespaces; see ``Machine.inside``."""
        return self.machine.inside(argv, bound_s=bound_s, check=check)

    def run_inside_network(
        self, argv: Sequence[str | Path], *, bound_s: float = 60, check: bool = True
    ) -> CompletedProcess[str]:
        """Runs a program of the machine to its end, in the node's network namespace only."""
        return self.network.run(argv, bound_s=bound_s, check=check)

    def start_inside_network(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> Process:
        """Starts a program in the node's network namespace; it dies with the node.

        Args:
            name: names its pid file and its log, ``NAME.log`` in the node's folder.
            argv: the program, with absolute paths.
            env: its whole environment; this process's without.
        """
        process = Process(self.files.folder / f"{name}.pid", self.files.folder / f"{name}.log")
        process.start(self.network.argv(argv), env)
        return process

    def serve_metadata(
        self,
        argv: Sequence[str | Path],
        env: Mapping[str, str] | None = None,
        *,
        port: int = METADATA_PORT,
        bound_s: float = 20,
    ) -> Process:
        """Starts a metadata server; returns when the node's pods can reach it.

        The program has to listen on 169.254.169.254 (or on all addresses), ``port``. On this node,
        and from its pods, that address is the node itself. One that runs already is replaced.

        Raises:
            WaitedInVain: nothing listens in time; with the end of its log.
        """
        old = Process(self.files.folder / "metadata.pid", self.files.folder / "metadata.log")
        old.kill()
        process = self.start_inside_network("metadata", argv, env)
        until(
            f"a metadata server on node {self.name}",
            lambda: self._listens(METADATA, port),
            bound_s=bound_s,
            log=process.log,
            alive=process.alive,
        )
        return process

    def load(self, archive: Path) -> None:
        """Imports an image archive into the running node."""
        self.machine.import_image(archive)

    def _listens(self, address: str, port: int) -> bool:
        with self.network.socket() as probe:
            probe.settimeout(1)
            probe.connect((address, port))
        return True

    def _power_off(self) -> None:
        """Ends all that is left of the machine, whatever is left. Its files stay."""
        self.machine.power_off()
        for file in self.files.folder.glob("*.pid"):
            if file != self.network.holder.file:
                Process(file, file.with_suffix(".log")).kill()
        network.unplug(self.site.network, self.number)
        self.network.close()
        until("the node's cgroups to go", lambda: cgroups.remove(self.files.cgroup), bound_s=20)


def _first_of_container(pid: int) -> bool:
    """Says whether a process is the first of a container (not of a pod's pause)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return fields["NSpid"].split()[-1] == "1" and fields["Name"].strip() != "pause"


def read(site: Site, folder: Path) -> Node:
    """Returns the node whose folder this is."""
    data = json.loads((folder / "node.json").read_text())
    return Node(site, NodeSpec.from_json(data["spec"]), data["number"])
