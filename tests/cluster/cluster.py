"""A Kubernetes cluster of several nodes on this machine."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from . import debs, images, keys, network, node, policies, stores, toolchain
from .access import Access
from .control_plane import ControlPlane
from .errors import ClusterError
from .heartbeats import STEADY, Heartbeats
from .layout import MOST_NODES, ClusterFiles
from .node import Node
from .node_config import NodeSpec, Taint
from .places import ROOT, locked
from .processes import BOOT_ID, Process, started_ticks
from .services import Services
from .site import Site
from .take_down import take_down
from .waiting import until


class Cluster(Access):
    """A running cluster. ``Cluster.up`` starts one, ``Cluster.attach`` finds one again.

    As a context manager it takes itself down at the end.
    """

    def __init__(
        self, site: Site, archives: Sequence[Path], *, enforces_policies: bool = False
    ) -> None:
        super().__init__(site)
        self.archives = list(archives)
        self.enforces_policies = enforces_policies
        self.control_plane = ControlPlane(
            site.files, site.network, site.api, site.tools.kube, site.beats
        )
        self.services = Services(
            site.files,
            site.network,
            site.api,
            site.tools.kube / "kube-proxy",
            site.tools.coredns,
            site.packages,
        )

    @classmethod
    def up(
        cls,
        name: str,
        nodes: Iterable[NodeSpec | str] = (),
        *,
        archives: Iterable[Path] = (),
        beats: Heartbeats = STEADY,
        services: bool = True,
        enforces_policies: bool = False,
        kept: bool = False,
    ) -> Cluster:
        """Starts a cluster, and returns when all its nodes are Ready.

        What it needs is built first where it was not (minutes in the first use, then nothing).

        Args:
            name: of a-z, 0-9 and -; no two clusters of one cache have the same.
            nodes: the nodes to start with.
            archives: image archives that every node has, besides ``python:3.11-slim``.
            beats: how fast a silent node is noticed.
            services: with Services and DNS (about 150 MB more memory).
            enforces_policies: NetworkPolicies hold (needs Services; 150 MB more on each node).
            kept: it outlives this process. Else ``sweep`` takes it down when this process is dead.

        Raises:
            ClusterError: there is one of this name, or something did not start; then nothing of it
                is left but the message.
        """
        site = _site(ClusterFiles.of(name), beats)
        every = [images.pause(), images.python(), *archives]
        store = stores.ensure(every)
        if enforces_policies:
            policies.prepare()
        _claim(site, every, kept, enforces_policies)
        try:
            cluster = cls(site, every, enforces_policies=enforces_policies)
            network.raise_limits()
            network.build(site.network)
            cluster.control_plane.up()
            cluster._forward()
            if services:
                cluster.services.up()
            if enforces_policies:
                cluster.apply(*policies.dns_service())
            cluster.add_nodes(nodes, store=store)
        except BaseException:
            take_down(name)
            raise
        return cluster

    @classmethod
    def attach(cls, name: str) -> Cluster:
        """Returns a cluster that some process started.

        Raises:
            ClusterError: there is none.
        """
        files = ClusterFiles.of(name)
        if not files.settings.exists():
            raise ClusterError(f"no cluster is called {name}")
        data = json.loads(files.settings.read_text())
        site, archives = (
            _site(files, Heartbeats(**data["beats"])),
            list(map(Path, data["archives"])),
        )
        return cls(site, archives, enforces_policies=data["enforces_policies"])

    def down(self) -> None:
        """Takes everything down: no process, mount, cgroup, namespace or file is left."""
        take_down(self.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    # Nodes

    def add_node(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        provider_id: str = "",
    ) -> Node:
        """Adds a node, and returns when it is Ready (about 2 s). See ``NodeSpec``."""
        [added] = self.add_nodes([NodeSpec(name, labels or {}, taints, provider_id)])
        return added

    def add_nodes(
        self, specs: Iterable[NodeSpec | str], *, store: Path | None = None
    ) -> list[Node]:
        """Adds nodes, all at once, and returns when all are Ready."""
        wanted = [NodeSpec(spec) if isinstance(spec, str) else spec for spec in specs]
        store = store or stores.ensure(self.archives)
        with locked(f"cluster-{self.name}"):
            first = self._number(len(wanted))
        added = [Node(self.site, spec, first + index) for index, spec in enumerate(wanted)]
        for one in added:
            if one.files.folder.exists():
                raise ClusterError(f"cluster {self.name} has or had a node {one.name}")
        if added:
            with ThreadPoolExecutor(len(added)) as pool:
                list(pool.map(lambda one: one.boot(store), added))
        for one in added:
            one.wait_ready()
        if self.enforces_policies:
            enforcement = policies.Enforcement(self.site.files, self.site.tools.kube / "kube-proxy")
            for one in added:
                enforcement.start(one)
        return added

    def node(self, name: str) -> Node:
        """Returns a node by its name, also a killed one.

        Raises:
            ClusterError: there was none, or it was removed.
        """
        files = self.site.files.node(name)
        if not files.settings.exists():
            raise ClusterError(f"cluster {self.name} has no node {name}")
        return node.read(self.site, files.folder)

    @property
    def nodes(self) -> list[Node]:
        """All nodes that were not removed, killed ones, too."""
        folders = sorted(path.parent for path in self.site.files.nodes.glob("*/node.json"))
        return sorted((node.read(self.site, folder) for folder in folders), key=lambda n: n.number)

    def load(self, archive: Path) -> None:
        """Gives an image to all nodes, those to come, too."""
        if archive in self.archives:
            return
        for one in self.nodes:
            if one.alive():
                one.load(archive)
        self.archives.append(archive)
        data = json.loads(self.site.files.settings.read_text())
        data["archives"] = list(map(str, self.archives))
        self.site.files.settings.write_text(json.dumps(data))

    # How it comes up

    def _number(self, count: int) -> int:
        """Takes the next ``count`` node numbers, and returns the first. None is used twice."""
        file = self.folder / "next-number"
        first = int(file.read_text()) if file.exists() else 1
        if first + count - 1 > MOST_NODES:
            raise ClusterError(f"a cluster can have {MOST_NODES} nodes in its life, not more")
        file.write_text(str(first + count))
        return first

    def _forward(self) -> None:
        """Brings the API server to a port of the machine's loopback, for ``kubeconfig``."""
        files = self.site.files
        forwarder = Process(files.pids / "forwarder.pid", files.logs / "forwarder.log")
        port = files.folder / "forwarder.port"
        module = f"{__package__}.forwarder"
        forwarder.start(
            [sys.executable, "-m", module, files.pids, "network", port],
            {**os.environ, "PYTHONPATH": str(ROOT)},
        )
        until(
            "the forwarder to listen",
            port.exists,
            bound_s=30,
            log=forwarder.log,
            alive=forwarder.alive,
        )
        server = f"https://127.0.0.1:{port.read_text()}"
        self.kubeconfig.write_text(keys.kubeconfig(files.keys, server, files.keys / "admin"))


def _site(files: ClusterFiles, beats: Heartbeats) -> Site:
    return Site(files, toolchain.ensure(), debs.ensure(), beats)


def _claim(site: Site, archives: Sequence[Path], kept: bool, enforces_policies: bool) -> None:
    """Takes the cluster's name: its folder appears with its owner in it, or not at all."""
    files = site.files
    owner = {
        "pid": os.getpid(),
        "ticks": started_ticks(os.getpid()),
        "boot": BOOT_ID.read_text().strip(),
    }
    data = {
        "owner": owner,
        "kept": kept,
        "beats": vars(site.beats),
        "archives": list(map(str, archives)),
        "enforces_policies": enforces_policies,
    }
    with locked(f"cluster-{files.name}"):
        if files.folder.exists():
            raise ClusterError(f"there is a cluster {files.name} in {files.folder}")
        unfinished = files.folder.with_name(f".{files.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        (unfinished / "cluster.json").write_text(json.dumps(data))
        unfinished.rename(files.folder)
