"""Where Prometheus finds an agent: the port in its pod, and what tells the agent of it. Pure."""

from __future__ import annotations

from typing import Any

from parcae_api.errors import InputError
from parcae_api.metric import AGENT_METRICS_PORT

Object = dict[str, Any]

ENV = "PARCAE_METRICS_PORT"
PORT_NAMES = ("metrics", "parcae-metrics")
"""The first that is free: names of a pod's ports differ."""
_CONTAINER = "spec.template.spec.containers[0]"
_MOST_PORT = 65_535


def add_metrics(spec: Object, container: Object) -> None:
    """Declare the user's port, else ours where nobody has it; without one there are no metrics.

    On the node's own network a declared port keeps other jobs' agents off the node: there only
    a user's choice is declared.

    Args:
        spec: The pod's.
        container: The first of it, with a list of environment variables.

    Raises:
        InputError: what the user chose is no port, or the container's ports are no list.
    """
    declared = [port for each in _containers(spec) for port in _ports(each)]
    taken = [port.get("containerPort") for port in declared]
    given = [e for e in container["env"] if isinstance(e, dict) and e.get("name") == ENV]
    if given:
        port = _chosen(given[-1])
    else:
        is_free = AGENT_METRICS_PORT not in taken and not spec.get("hostNetwork")
        port = AGENT_METRICS_PORT if is_free else 0
        container["env"].append({"name": ENV, "value": str(port)})
    names = [each.get("name") for each in declared]
    free = next((name for name in PORT_NAMES if name not in names), None)
    if port and port not in taken and free is not None:
        ports = container.get("ports") or []
        if not isinstance(ports, list):
            kind = type(ports).__name__
            raise InputError(f"{_CONTAINER}.ports: must be a list, but it is {kind}")
        container["ports"] = [*ports, {"name": free, "containerPort": port}]


def _chosen(entry: Object) -> int:
    """0 for none, or where the template does not say it."""
    value = entry.get("value")
    if value is None:
        return 0
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        port = int(value[:9])
        if port <= _MOST_PORT:
            return port
    raise InputError(
        f"{_CONTAINER}.env: {ENV} is {value!r:.40}; give a port as text, or '0' for none"
    )


def _containers(spec: Object) -> list[Object]:
    others = spec.get("initContainers")
    found = [*spec["containers"], *(others if isinstance(others, list) else [])]
    return [each for each in found if isinstance(each, dict)]


def _ports(container: Object) -> list[Object]:
    ports = container.get("ports")
    return [each for each in ports if isinstance(each, dict)] if isinstance(ports, list) else []
