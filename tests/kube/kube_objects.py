"""Jobs, pods and nodes as the API server gives them."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from parcae_api.job import ParcaeJob
from parcae_operator.kube.objects import read_job

Object = dict[str, Any]

_numbers = itertools.count(1000)


def next_version() -> str:
    """A resourceVersion above all before."""
    return str(next(_numbers))


def rfc3339(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def job_body(name: str = "gpt", namespace: str = "team", **spec: Any) -> Object:
    """A ParcaeJob. Keywords replace fields of its spec."""
    return {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "generation": 1,
            "resourceVersion": next_version(),
            "creationTimestamp": rfc3339(1_900_000_000),
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "instances": {"min": 1, "max": 2},
            "entrypoint": {"function": "train:gpt"},
            "template": template(),
            **spec,
        },
    }


def template(container: Object | None = None, **spec: Any) -> Object:
    """A pod template with one container."""
    return {"spec": {"containers": [{"image": "gpt:1", **(container or {})}], **spec}}


def make_job(**spec: Any) -> ParcaeJob:
    return read_job(job_body(**spec))


def make_pod(
    name: str = "gpt-aaaaaa",
    *,
    uid: str = "",
    job: str = "gpt",
    job_uid: str = "",
    node: str = "",
    phase: str = "",
    version: str | int = "",
    created_s: float = 1_900_000_000,
    bound_s: float = 1_900_000_001,
    **metadata: Any,
) -> Object:
    """An agent pod of a job; bound where a node is given, and running then."""
    bound = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": rfc3339(bound_s),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": uid or f"uid-of-{name}",
            "resourceVersion": str(version) or next_version(),
            "creationTimestamp": rfc3339(created_s),
            "labels": {"parcae.dev/job": job, "parcae.dev/job-uid": job_uid or f"uid-of-{job}"},
            "managedFields": [{"manager": "operator"}],
            **metadata,
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"image": "x"}],
            **({"nodeName": node} if node else {}),
        },
        "status": {
            "phase": phase or ("Running" if node else "Pending"),
            **({"conditions": [bound], "startTime": rfc3339(bound_s)} if node else {}),
        },
    }


def ended(
    pod: Object, exit_code: int, reason: str = "Error", at_s: float = 1_900_000_100
) -> Object:
    """That pod when its container has ended."""
    terminated = {"exitCode": exit_code, "reason": reason, "finishedAt": rfc3339(at_s)}
    return {
        **pod,
        "metadata": {**pod["metadata"], "resourceVersion": next_version()},
        "status": {
            **pod["status"],
            "phase": "Failed" if exit_code else "Succeeded",
            "containerStatuses": [{"name": "agent", "state": {"terminated": terminated}}],
        },
    }


def deleting(pod: Object, at_s: float = 1_900_000_130) -> Object:
    """That pod once it is asked to go."""
    metadata = {
        **pod["metadata"],
        "resourceVersion": next_version(),
        "deletionTimestamp": rfc3339(at_s),
    }
    return {**pod, "metadata": metadata}


def make_node(
    name: str = "node-1",
    *,
    uid: str = "",
    taints: list[Object] | None = None,
    ready: str = "True",
    created_s: float = 1_899_999_000,
    heartbeat_s: float = 1_900_000_000,
    labels: Object | None = None,
) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-of-{name}",
            "resourceVersion": next_version(),
            "creationTimestamp": rfc3339(created_s),
            "labels": {"node.kubernetes.io/lifecycle": "spot", **(labels or {})},
        },
        "spec": {"taints": taints or []},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": ready,
                    "reason": "KubeletReady",
                    "lastHeartbeatTime": rfc3339(heartbeat_s),
                    "lastTransitionTime": rfc3339(created_s),
                }
            ],
            "allocatable": {"cpu": "4"},
        },
    }
