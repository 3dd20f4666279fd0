"""A node as Kubernetes sees it: what can be read, said about it, and asked of it by the API."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .api import Api, ApiError
from .waiting import until


class NodeObject:
    """A Node object, which may outlive its machine.

    Args:
        api: a client of the API server.
        name: its name.
        log: what to show when a wait is in vain.
    """

    def __init__(self, api: Api, name: str, log: Path | None = None) -> None:
        self.api = api
        self.name = name
        self._log = log

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/api/v1/nodes/{self.name}"

    def get(self) -> Any | None:
        """Returns the Node object, or None if there is none."""
        return self.api.find(self.path)

    def ready(self) -> str:
        """Returns the status of its Ready condition: True, False, Unknown; empty with no object."""
        node = self.get() or {}
        conditions = node.get("status", {}).get("conditions", [])
        return next((str(c["status"]) for c in conditions if c["type"] == "Ready"), "")

    def pods(self) -> list[Any]:
        """Returns the pods that are bound to it, in all namespaces."""
        query = f"fieldSelector=spec.nodeName%3D{self.name}"
        found = self.api.get(f"/api/v1/pods?{query}")["items"]
        assert isinstance(found, list)
        return found

    def wait_ready(self, bound_s: float = 120) -> None:
        """Returns when it is Ready and takes pods.

        Raises:
            WaitedInVain: it is not, in time.
        """
        until(f"node {self.name} to be Ready", self._usable, bound_s=bound_s, log=self._log)

    def wait_not_ready(self, bound_s: float = 120) -> None:
        """Returns when it is seen as gone: Ready is not True and it has the unreachable taint.

        Raises:
            WaitedInVain: it is not, in time.
        """
        until(f"node {self.name} to be NotReady", self._lost, bound_s=bound_s, log=self._log)

    def label(self, labels: dict[str, str | None]) -> None:
        """Sets labels; None removes one."""
        self.api.patch(self.path, {"metadata": {"labels": labels}})

    def annotate(self, annotations: dict[str, str | None]) -> None:
        """Sets annotations; None removes one."""
        self.api.patch(self.path, {"metadata": {"annotations": annotations}})

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> None:
        """Adds a taint, or changes the value of the one with this key and effect."""
        others = [t for t in self._taints() if (t["key"], t["effect"]) != (key, effect)]
        self._set_taints([*others, {"key": key, "value": value, "effect": effect}])

    def untaint(self, key: str) -> None:
        """Removes all taints of a key."""
        self._set_taints([taint for taint in self._taints() if taint["key"] != key])

    def condition(
        self, kind: str, status: str = "True", reason: str = "Test", message: str = ""
    ) -> None:
        """Sets a condition, as a node problem detector does. The kubelet leaves it alone."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": kind, "status": status, "reason": reason, "message": message}
        condition |= {"lastTransitionTime": now, "lastHeartbeatTime": now}
        self.api.patch(f"{self.path}/status", {"status": {"conditions": [condition]}})

    def cordon(self) -> None:
        """Keeps new pods off it."""
        self.api.patch(self.path, {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        """Lets new pods on it."""
        self.api.patch(self.path, {"spec": {"unschedulable": None}})

    def drain(self, grace_s: int | None = None, bound_s: float = 120) -> None:
        """Cordons it, evicts its pods (but DaemonSets'), and returns when they are gone.

        Args:
            grace_s: seconds that each pod may take to end; its own without.
            bound_s: seconds after which this gives up.

        Raises:
            WaitedInVain: pods are left; disruption budgets are honoured, so it may never end.
        """
        self.cordon()
        until(
            f"pods to leave node {self.name}",
            lambda: not self._evict(grace_s),
            bound_s=bound_s,
            every_s=0.2,
            log=self._log,
        )

    def collect_pods(self) -> None:
        """Deletes its pods at once, as the pod collector does a minute after a node is gone."""
        for pod in self.pods():
            meta = pod["metadata"]
            self.api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", now=True)

    def delete_object(self) -> None:
        """Deletes the Node object, as a cloud's controller does when the machine is gone."""
        self.api.delete(self.path)

    def _evict(self, grace_s: int | None) -> list[str]:
        """Asks all pods that were not asked yet to leave; returns the names of all that remain."""
        remaining = []
        for pod in self.pods():
            meta = pod["metadata"]
            if any(owner["kind"] == "DaemonSet" for owner in meta.get("ownerReferences", [])):
                continue
            remaining.append(meta["name"])
            if "deletionTimestamp" in meta:
                continue
            eviction: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction"}
            eviction["metadata"] = {"name": meta["name"], "namespace": meta["namespace"]}
            if grace_s is not None:
                eviction["deleteOptions"] = {"gracePeriodSeconds": grace_s}
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/eviction"
            try:
                self.api.create(path, eviction)
            except ApiError as error:
                if error.status not in (404, 429):  # gone meanwhile; a budget says not yet
                    raise
        return remaining

    def _usable(self) -> bool:
        return self.ready() == "True" and not any(
            taint["key"].startswith("node.kubernetes.io/not-ready") for taint in self._taints()
        )

    def _lost(self) -> bool:
        return self.ready() != "True" and any(
            taint["key"] == "node.kubernetes.io/unreachable" for taint in self._taints()
        )

    def _taints(self) -> list[dict[str, str]]:
        found = self.api.get(self.path)["spec"].get("taints", [])
        assert isinstance(found, list)
        return found

    def _set_taints(self, taints: list[dict[str, str]]) -> None:
        data = {"spec": {"taints": taints}}
        self.api.patch(self.path, data, kind="application/merge-patch+json")
