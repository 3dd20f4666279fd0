"""What the API server and the disk say of the run, twice a second: the records to compare with.

Nothing here comes from a metrics endpoint. Whether etcd and the planner answer is asked of their
health endpoints, which are not what the operator asks.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.cluster import ApiError, Cluster
from tests.cluster.api import request
from tests.deploy.install import NAMESPACE as SYSTEM

Object = dict[str, Any]
JobKey = tuple[str, str]

EVERY_S = 0.5
_PROBE_S = 1.0


@dataclass(frozen=True)
class Look:
    """How things stood at a moment. While the API server is away its objects are as last seen."""

    at_s: float
    jobs: Mapping[JobKey, Object] = field(default_factory=dict)
    pods: Sequence[Object] = ()
    nodes: Sequence[Object] = ()
    api_up: bool = False
    board_up: bool = False
    planner_up: bool = False
    checkpoint_s: float | None = None
    """When the newest complete checkpoint on the disk was written."""

    @cached_property
    def operators(self) -> int:
        """Pods of the operator that run and stay; after an outage they are not ready for a while,
        and scraped all the same."""
        return sum(_runs(pod) for pod in _system(self.pods, "operator"))


class Journal:
    """Looks until it is closed, on a thread of its own.

    Args:
        cluster: at what.
        checkpoints: the folder of the job's checkpoints, and its layers.
        told: is called with the pods of each look.
    """

    def __init__(
        self,
        cluster: Cluster,
        checkpoints: tuple[Path, int],
        told: Callable[[Sequence[Object]], None],
    ) -> None:
        self._cluster = cluster
        self._checkpoints = checkpoints
        self._told = told
        self._stop = threading.Event()
        self.looks: list[Look] = []
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Looks no more."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        last = Look(0.0)
        while not self._stop.is_set():
            last = self._look(last)
            self.looks.append(last)
            if last.api_up:
                self._told(last.pods)
            self._stop.wait(EVERY_S)

    def _look(self, last: Look) -> Look:
        api, at_s = self._cluster.api, time.time()
        try:
            jobs = (api.find("/apis/parcae.dev/v1alpha1/parcaejobs") or {"items": []})["items"]
            pods: Sequence[Object] = api.get("/api/v1/pods")["items"]
            nodes: Sequence[Object] = api.get("/api/v1/nodes")["items"]
            by_key = {(j["metadata"]["namespace"], j["metadata"]["name"]): j for j in jobs}
            api_up = True
        except (ApiError, OSError):
            by_key, pods, nodes, api_up = dict(last.jobs), last.pods, last.nodes, False
        return Look(
            at_s=at_s,
            jobs=by_key,
            pods=pods,
            nodes=nodes,
            api_up=api_up,
            board_up=self._answers(pods, "etcd", 2381, "/health"),
            planner_up=self._answers(pods, "planner", 8080, "/healthz"),
            checkpoint_s=self._newest_checkpoint(),
        )

    def _answers(self, pods: Sequence[Object], component: str, port: int, path: str) -> bool:
        for pod in _system(pods, component):
            if address := pod["status"].get("podIP"):
                network = self._cluster.site.network
                try:
                    status, _ = request(network, address, port, "GET", path, timeout_s=_PROBE_S)
                except ApiError:
                    continue
                if status == 200:
                    return True
        return False

    def _newest_checkpoint(self) -> float | None:
        folder, num_layers = self._checkpoints
        try:
            for step in sorted(folder.glob("step-*"), reverse=True):
                layers = list(step.glob("layer-*.safetensors"))
                if len(layers) == num_layers:
                    return max(layer.stat().st_mtime for layer in layers)
        except OSError:  # pruned meanwhile
            pass
        return None


@dataclass(frozen=True)
class Looks:
    """All looks of a run."""

    looks: Sequence[Look]

    def at(self, at_s: float) -> Look | None:
        """The newest at a moment; None before the first."""
        found = bisect.bisect_right(self.looks, at_s, key=lambda look: look.at_s)
        return self.looks[found - 1] if found else None

    def between(self, start_s: float, end_s: float) -> Sequence[Look]:
        """Those in an interval."""
        first = bisect.bisect_left(self.looks, start_s, key=lambda look: look.at_s)
        last = bisect.bisect_right(self.looks, end_s, key=lambda look: look.at_s)
        return self.looks[first:last]


def _system(pods: Sequence[Object], component: str) -> list[Object]:
    return [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == SYSTEM
        and pod["metadata"].get("labels", {}).get("app.kubernetes.io/component") == component
    ]


def _runs(pod: Object) -> bool:
    stays = "deletionTimestamp" not in pod["metadata"]
    return stays and pod["status"]["phase"] == "Running"
