"""Node, Pod and Event objects as the API server gives them, per cloud."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

T0 = 1_900_000_000.0
"""Now, in all these tests."""

CLOUDS: dict[str, dict[str, Any]] = {
    "aws": {
        "labels": {
            "eks.amazonaws.com/capacityType": "SPOT",
            "eks.amazonaws.com/nodegroup": "gpu",
            "node.kubernetes.io/instance-type": "g5.xlarge",
        },
        "provider_id": "aws:///us-east-1a/i-0abc",
        "name": "ip-10-0-1-7.ec2.internal",
    },
    "karpenter": {
        "labels": {
            "karpenter.sh/capacity-type": "spot",
            "karpenter.sh/nodepool": "gpu",
            "karpenter.sh/registered": "true",
            "karpenter.sh/initialized": "true",
        },
        "provider_id": "aws:///us-east-1a/i-0def",
        "name": "ip-10-0-1-8.ec2.internal",
    },
    "gke": {
        "labels": {
            "cloud.google.com/gke-spot": "true",
            "cloud.google.com/gke-provisioning": "spot",
            "cloud.google.com/gke-accelerator": "nvidia-l4",
        },
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        "provider_id": "gce://project/us-central1-a/gke-gpu-0",
        "name": "gke-gpu-0",
    },
    "azure": {
        "labels": {"kubernetes.azure.com/scalesetpriority": "spot"},
        "taints": [
            {
                "key": "kubernetes.azure.com/scalesetpriority",
                "value": "spot",
                "effect": "NoSchedule",
            }
        ],
        "provider_id": "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute"
        "/virtualMachineScaleSets/aks-gpu-1-vmss/virtualMachines/12",
        "name": "aks-gpu-1-vmss00000c",
    },
    "plain": {
        "labels": {"node.kubernetes.io/lifecycle": "spot"},
        "provider_id": "",
        "name": "node-1",
    },
    "on-demand": {
        "labels": {"eks.amazonaws.com/capacityType": "ON_DEMAND"},
        "provider_id": "aws:///us-east-1a/i-0fff",
        "name": "ip-10-0-1-9.ec2.internal",
    },
}


def rfc3339(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def make_node(cloud: str = "plain", **changes: Any) -> dict[str, Any]:
    """A ready node of a cloud that is an hour old and has one GPU.

    Changes: ``labels``, ``annotations``, ``taints`` and ``conditions`` are added; ``spec`` and
    ``metadata`` are updated; ``ready`` is the status of Ready; ``gpus`` how many are offered.
    """
    base = CLOUDS[cloud]
    ready = {
        "type": "Ready",
        "status": changes.get("ready", "True"),
        "reason": changes.get("ready_reason", "KubeletReady"),
        "message": changes.get("ready_message", "kubelet is posting ready status"),
        "lastTransitionTime": rfc3339(T0 - 3000),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": base["name"],
            "uid": f"uid-{cloud}",
            "creationTimestamp": rfc3339(T0 - 3600),
            "labels": {
                "kubernetes.io/hostname": base["name"],
                **base["labels"],
                **changes.get("labels", {}),
            },
            "annotations": changes.get("annotations", {}),
            **changes.get("metadata", {}),
        },
        "spec": {
            "providerID": base["provider_id"],
            "taints": [*base.get("taints", []), *changes.get("taints", [])],
            **changes.get("spec", {}),
        },
        "status": {
            "allocatable": {"cpu": "4", "nvidia.com/gpu": str(changes.get("gpus", 1))},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                ready,
                *changes.get("conditions", []),
            ],
            "nodeInfo": {"bootID": "boot-1"},
        },
    }


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, Any]:
    return {"key": key, "value": value, "effect": effect}


def condition(kind: str, status: str = "True", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **fields}


def make_pod(node: str = "node-1", phase: str = "Running", **status: Any) -> dict[str, Any]:
    """A bound pod, ten minutes old."""
    conditions = status.pop("conditions", [])
    metadata = status.pop("metadata", {})
    bound = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": rfc3339(T0 - 590),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "job-1",
            "uid": "pod-uid",
            "creationTimestamp": rfc3339(T0 - 600),
            **metadata,
        },
        "spec": {"nodeName": node, "restartPolicy": "Never"} if node else {},
        "status": {
            "phase": phase,
            "startTime": rfc3339(T0 - 590),
            "conditions": [bound, *conditions] if node else conditions,
            **status,
        },
    }


def ended(exit_code: int, reason: str = "Error") -> list[dict[str, Any]]:
    """``containerStatuses`` of a pod whose container ended."""
    return [
        {
            "name": "agent",
            "containerID": "containerd://1",
            "restartCount": 0,
            "state": {"terminated": {"exitCode": exit_code, "reason": reason}},
        }
    ]


def waiting(reason: str) -> list[dict[str, Any]]:
    return [{"name": "agent", "state": {"waiting": {"reason": reason, "message": "why"}}}]


def make_event(reason: str, node: str = "node-1", at_s: float = T0, **more: Any) -> dict[str, Any]:
    return {
        "kind": "Event",
        "metadata": {"name": f"{node}.1"},
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "reason": reason,
        "type": "Warning",
        "lastTimestamp": rfc3339(at_s),
        "message": "for people",
        **more,
    }
