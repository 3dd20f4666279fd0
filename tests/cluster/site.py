"""What a cluster and its nodes share: files, network, API client, programs, clocks."""

from __future__ import annotations

from dataclasses import dataclass

from .api import Api
from .debs import Unpacked
from .heartbeats import Heartbeats
from .layout import ClusterFiles
from .namespaces import Network
from .toolchain import Toolchain


@dataclass(frozen=True)
class Site:
    """One cluster's share of the machine, and what it is run with."""

    files: ClusterFiles
    tools: Toolchain
    packages: Unpacked
    beats: Heartbeats

    @property
    def network(self) -> Network:
        """The cluster's network namespace: control plane, bridge, Services."""
        return Network.at(self.files.pids, "network")

    @property
    def api(self) -> Api:
        """A client of the API server."""
        return Api(self.network, self.files.keys)
