"""What all jobs of one operator share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from parcae_api.etcd import EtcdClient
from parcae_api.planning import Planner
from parcae_operator.claim import Claim
from parcae_operator.kube.api import ClusterApi
from parcae_operator.kube.board_users import BoardUsers
from parcae_operator.kube.settings import OperatorSettings
from parcae_operator.kube.store import ClusterStore
from parcae_operator.metrics.meter import Meter


@dataclass(frozen=True)
class Services:
    """Made at the start, closed at the end."""

    settings: OperatorSettings
    api: ClusterApi
    store: ClusterStore
    board: EtcdClient
    users: BoardUsers | None
    """None where the board is open."""
    claim: Claim
    planner: Planner | None
    """The planner service; None where there is none."""
    loop: asyncio.AbstractEventLoop
    """Where calls to the API server are made."""
    meter: Meter = field(default_factory=Meter)
    """Counts what only this process knows."""
