"""Which nodes are spot, and what must be gone before a node can be used. Data."""

from __future__ import annotations

from parcae_operator.signals.model import Cloud, Place
from parcae_operator.signals.rules import Identity

AWS, GKE, AZURE, TAINT = Cloud.AWS, Cloud.GKE, Cloud.AZURE, Place.TAINT

SPOT: tuple[Identity, ...] = (
    Identity(key="cloud.google.com/gke-spot", values=("true",), cloud=GKE, setter="GKE"),
    Identity(key="cloud.google.com/gke-preemptible", values=("true",), cloud=GKE, setter="GKE"),
    Identity(
        key="cloud.google.com/gke-provisioning",
        values=("spot", "preemptible"),
        cloud=GKE,
        setter="GKE",
    ),
    Identity(
        key="eks.amazonaws.com/capacityType",
        values=("spot",),
        cloud=AWS,
        setter="EKS managed node group",
    ),
    Identity(key="karpenter.sh/capacity-type", values=("spot",), setter="Karpenter"),
    Identity(
        key="kubernetes.azure.com/scalesetpriority", values=("spot",), cloud=AZURE, setter="AKS"
    ),
    Identity(key="cluster.x-k8s.io/interruptible", setter="Cluster API"),
    Identity(key="node.kubernetes.io/lifecycle", values=("spot",), setter="kubelet --node-labels"),
    Identity(
        key="cloud.google.com/gke-spot",
        values=("true",),
        place=TAINT,
        cloud=GKE,
        setter="GKE auto-provisioning",
    ),
    Identity(
        key="kubernetes.azure.com/scalesetpriority",
        values=("spot",),
        place=TAINT,
        cloud=AZURE,
        setter="AKS",
    ),
)

IDENTITY_TAINTS = frozenset(
    {
        "cloud.google.com/gke-spot",
        "cloud.google.com/gke-preemptible",
        "cloud.google.com/gke-provisioning",
        "kubernetes.azure.com/scalesetpriority",
        "nvidia.com/gpu",
        "amd.com/gpu",
        "sku",
    }
)
"""Taints that say what a node is, all its life."""

STARTUP_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
    }
)
STARTUP_TAINT_PREFIXES = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "readiness.k8s.io/",
)
ACCELERATOR_LABELS = (
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "kubernetes.azure.com/accelerator",
    "accelerator",
)
"""A node with one of these has a GPU; while it offers none, its driver is not up."""
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
