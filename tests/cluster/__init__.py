"""A real Kubernetes of several nodes on one machine, whose nodes can be preempted.

::

    with Cluster.up("mine", [NodeSpec("a", {"pool": "spot"}), "b"]) as cluster:
        cluster.kubectl("apply", "-f", "pods.yaml")
        cluster.node("a").kill()
        cluster.node("a").wait_not_ready()

The control plane, the kubelets, containerd and runc are the real programs; a node is a set of
namespaces instead of a machine. See ``docs/test-cluster.md``.
"""

from .api import Api, ApiError
from .cluster import Cluster
from .control_plane import Component, ControlPlane
from .errors import ClusterError, ProgramFailed, WaitedInVain
from .heartbeats import CLOUD, FAST, STEADY, Heartbeats
from .node import Node
from .node_config import NodeSpec, Taint
from .processes import Process
from .take_down import sweep, take_down
from .waiting import until

__all__ = [
    "CLOUD",
    "FAST",
    "STEADY",
    "Api",
    "ApiError",
    "Cluster",
    "ClusterError",
    "Component",
    "ControlPlane",
    "Heartbeats",
    "Node",
    "NodeSpec",
    "Process",
    "ProgramFailed",
    "Taint",
    "WaitedInVain",
    "sweep",
    "take_down",
    "until",
]
