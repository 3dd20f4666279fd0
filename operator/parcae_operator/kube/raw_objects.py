"""Objects of the API server as they travel: the few fields that the store needs of them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

Object = dict[str, Any]
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_LONGEST_ZONE = 63


def resource_version(raw: Object) -> int:
    """Resource versions of one kind are numbers that grow."""
    text = str(raw.get("metadata", {}).get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0


def bound_unix_s(raw: Object) -> float:
    """When a pod was given its node; 0 where nothing tells."""
    for condition in raw["status"].get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            return unix_s(condition.get("lastTransitionTime"))
    return unix_s(raw["status"].get("startTime"))


def zone_of(node: Object) -> str:
    """Where a node is; empty where nothing tells."""
    labels = (node.get("metadata") or {}).get("labels") or {}
    found = next((labels[key] for key in _ZONES if labels.get(key)), "")
    return str(found)[:_LONGEST_ZONE]


def unix_s(text: object) -> float:
    """A time as Kubernetes writes it; 0 where it is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def trimmed(raw: Object) -> Object:
    """What is read of a pod; the rest would only take memory."""
    metadata = raw.get("metadata") or {}
    spec = raw.get("spec") or {}
    return {
        "metadata": {
            k: v for k, v in metadata.items() if k not in ("managedFields", "annotations")
        },
        "spec": {k: spec[k] for k in ("nodeName", "restartPolicy") if k in spec},
        "status": raw.get("status") or {},
    }
