"""How fast a cluster notices that a node is gone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Heartbeats:
    """The clocks of nodes' heartbeats.

    A node is NotReady when it was silent for ``grace_s``. Its client gives up on a heartbeat after
    ``status_s``; where two cores are full, less than about 4 s makes healthy nodes NotReady.

    Args:
        status_s: seconds between two reports of a node's status.
        lease_s: seconds that a node's lease lasts; it is renewed at a quarter of that.
        grace_s: seconds of silence after which the node is NotReady and unreachable.
        monitor_s: seconds between two looks at the nodes.
    """

    status_s: int = 5
    lease_s: int = 12
    grace_s: int = 16
    monitor_s: int = 1


STEADY = Heartbeats()
FAST = Heartbeats(status_s=2, lease_s=10, grace_s=12)
"""For a quiet machine only."""
CLOUD = Heartbeats(status_s=10, lease_s=40, grace_s=50, monitor_s=5)
"""Kubernetes' own defaults."""
