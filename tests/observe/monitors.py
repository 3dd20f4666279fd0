"""What the Prometheus operator makes of the chart's monitors and rules. Pure.

The cluster has that operator's kinds and not the operator itself: this does its part, from the
objects as the API server keeps them, for the few fields that the chart uses. One that it does not
know is an error, so that nothing the chart says is left out unseen. It also finds the pods: Debian
builds Prometheus without discovery by Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

Object = dict[str, Any]

GROUP = "monitoring.coreos.com"
KINDS = {"PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"}
SCRAPE_S = 1
"""Between two scrapes, where the chart says 15 s: a run of two minutes is then as well resolved as
half an hour on a real cluster."""
FOR_DIVISOR = 180
"""Alerts wait a third of a second for each minute of their `for`. Their windows are as they are."""

_MONITOR = frozenset({"selector", "podMetricsEndpoints", "namespaceSelector"})
_ENDPOINT = frozenset({"port", "path", "interval", "honorLabels", "relabelings"})
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def kinds() -> list[Object]:
    """CRDs that take the chart's monitors and rules as they are."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }
        for kind, plural in KINDS.items()
    ]


def config(monitors: Iterable[Object], rules: str, targets: str) -> Object:
    """Prometheus' configuration.

    Args:
        monitors: PodMonitors.
        rules: the file of rules.
        targets: the folder with a file of targets for each endpoint (``targets_of``).
    """
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
        "rule_files": [rules],
        "scrape_configs": [
            {
                "job_name": name,
                "honor_labels": endpoint.get("honorLabels", False),
                "metrics_path": endpoint.get("path", "/metrics"),
                "file_sd_configs": [{"files": [f"{targets}/{file_name(name)}"]}],
            }
            for monitor in monitors
            for name, endpoint in _endpoints(monitor)
        ],
    }


def targets_of(monitors: Iterable[Object], pods: Sequence[Object]) -> dict[str, list[Object]]:
    """For each endpoint of the monitors the pods that it selects, as ``file_sd_configs`` reads it.

    The labels are those that the Prometheus operator's relabelling gives each target.
    """
    return {
        name: [found for pod in pods if (found := _target(monitor, endpoint, pod))]
        for monitor in monitors
        for name, endpoint in _endpoints(monitor)
    }


def file_name(endpoint: str) -> str:
    """Of its targets."""
    return f"{endpoint.replace('/', '-')}.json"


def rule_file(rules: Iterable[Object]) -> Object:
    """The rules of PrometheusRules, each with a `for` that this run can wait for."""
    groups = [group for rule in rules for group in rule["spec"]["groups"]]
    return {
        "groups": [
            {**group, "rules": [_sooner(rule) for rule in group["rules"]]} for group in groups
        ]
    }


def seconds(duration: str) -> int:
    """Of ``5m`` or ``1h30m``."""
    return sum(int(n) * _SECONDS[unit] for n, unit in re.findall(r"(\d+)([smhd])", duration))


def _sooner(rule: Object) -> Object:
    if "for" not in rule:
        return rule
    return {**rule, "for": f"{seconds(rule['for']) * 1000 // FOR_DIVISOR}ms"}


def _endpoints(monitor: Object) -> Iterable[tuple[str, Object]]:
    name, namespace = monitor["metadata"]["name"], monitor["metadata"]["namespace"]
    _only(monitor["spec"], _MONITOR, name)
    for index, endpoint in enumerate(monitor["spec"]["podMetricsEndpoints"]):
        _only(endpoint, _ENDPOINT, name)
        yield f"podMonitor/{namespace}/{name}/{index}", endpoint


def _target(monitor: Object, endpoint: Object, pod: Object) -> Object | None:
    """None where the monitor does not select the pod, or it does not run or has no such port."""
    metadata, status = pod["metadata"], pod["status"]
    home, spec, port = monitor["metadata"]["namespace"], monitor["spec"], endpoint["port"]
    _only(spec["selector"], frozenset({"matchLabels"}), monitor["metadata"]["name"])
    where = spec.get("namespaceSelector", {})
    if not where.get("any") and metadata["namespace"] not in where.get("matchNames", [home]):
        return None
    if not spec["selector"]["matchLabels"].items() <= metadata.get("labels", {}).items():
        return None
    if status["phase"] in ("Failed", "Succeeded") or not status.get("podIP"):
        return None
    for container in pod["spec"]["containers"]:
        for each in container.get("ports", ()):
            if each.get("name") == port:
                return {
                    "targets": [f"{status['podIP']}:{each['containerPort']}"],
                    "labels": {
                        "namespace": metadata["namespace"],
                        "pod": metadata["name"],
                        "container": container["name"],
                        "endpoint": port,
                        "job": f"{home}/{monitor['metadata']['name']}",
                        **dict(_relabelled(endpoint.get("relabelings", ()), pod)),
                    },
                }
    return None


def _relabelled(rules: Sequence[Object], pod: Object) -> Iterable[tuple[str, str]]:
    """Labels that are taken from a pod's own, or from its node."""
    meta = {"__meta_kubernetes_pod_node_name": pod["spec"].get("nodeName", "")}
    for label, value in pod["metadata"].get("labels", {}).items():
        meta[f"__meta_kubernetes_pod_label_{re.sub('[^a-zA-Z0-9_]', '_', label)}"] = value
    for rule in rules:
        _only(rule, frozenset({"sourceLabels", "targetLabel"}), "a relabelling")
        [source] = rule["sourceLabels"]
        yield rule["targetLabel"], meta.get(source, "")


def _only(found: Object, known: frozenset[str], where: str) -> None:
    if unknown := found.keys() - known:
        raise ValueError(f"{where}: {', '.join(sorted(unknown))} is not understood here")
