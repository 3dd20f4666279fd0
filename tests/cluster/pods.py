"""Small pods for tests, as data for ``Cluster.apply``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PORT = 8080
IMAGE = "python:3.11-slim"


def pod(
    name: str,
    argv: list[str],
    *,
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    host_paths: Mapping[str, str] | None = None,
    ready_port: int | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Returns a pod with one container of the Python base image.

    Args:
        name: its name; its label ``app`` has the same.
        argv: what it runs.
        node: where it has to run; anywhere without.
        labels: further labels.
        host_paths: folders of the machine and where the pod sees them, read-only.
        ready_port: it is Ready when this port answers HTTP; at once without.
        spec: more of the pod's spec.
    """
    paths = dict(host_paths or {})
    container: dict[str, Any] = {"name": "main", "image": IMAGE, "command": argv}
    container["imagePullPolicy"] = "IfNotPresent"
    container["volumeMounts"] = [
        {"name": f"host-{index}", "mountPath": place, "readOnly": True}
        for index, place in enumerate(paths.values())
    ]
    if ready_port is not None:
        probe = {"httpGet": {"path": "/", "port": ready_port}, "periodSeconds": 1}
        container["readinessProbe"] = probe
    volumes = [
        {"name": f"host-{index}", "hostPath": {"path": path}} for index, path in enumerate(paths)
    ]
    details: dict[str, Any] = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    details["volumes"] = volumes
    if node is not None:
        details["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name, **(labels or {})}},
        "spec": {**details, **spec},
    }


def server(name: str, node: str | None = None, **more: Any) -> dict[str, Any]:
    """Returns a pod that serves HTTP on ``PORT``."""
    argv = ["python3", "-m", "http.server", str(PORT)]
    return pod(name, argv, node=node, ready_port=PORT, **more)
