"""A Prometheus in the cluster's network, which scrapes what the chart's monitors select."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from tests.cluster import Cluster, Process, debs, until
from tests.cluster.api import request

from . import monitors

Labels = frozenset[tuple[str, str]]
Object = dict[str, Any]

_HOST, _PORT = "127.0.0.1", 9090


@dataclass(frozen=True)
class Series:
    """A time series: its labels without its name, and its values by Unix time."""

    labels: Labels
    values: Mapping[float, float]


class Prometheus:
    """One that scrapes what the monitors in the cluster say.

    ``follow`` gives it the monitors and rules as they are in the API server then, ``see`` the pods
    as they are.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._config = folder / "prometheus.yaml"
        self._monitors: list[Object] = []
        self._targets: dict[str, list[Object]] = {}
        self._config.write_text(yaml.safe_dump(monitors.config([], "", "")))
        argv: list[str | Path] = [
            debs.ensure(debs.PROMETHEUS).prometheus,
            f"--config.file={self._config}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={_HOST}:{_PORT}",
            "--web.enable-lifecycle",
            "--query.lookback-delta=5s",
        ]
        self.process: Process = cluster.start_inside("prometheus", argv, {"GOMAXPROCS": "1"})
        until(
            "Prometheus to be ready",
            lambda: self._ask("GET", "/-/ready"),
            bound_s=30,
            log=self.process.log,
            alive=self.process.alive,
        )

    def follow(self) -> None:
        """Takes the chart's monitors and rules out of the API server."""
        rules = self._folder / "rules.yaml"
        rules.write_text(yaml.safe_dump(monitors.rule_file(self._list("PrometheusRule"))))
        self._monitors = self._list("PodMonitor")
        config = monitors.config(self._monitors, str(rules), str(self._folder))
        self._config.write_text(yaml.safe_dump(config))
        self._ask("POST", "/-/reload")

    def see(self, pods: Sequence[Object]) -> None:
        """Takes in where pods are now."""
        for name, targets in monitors.targets_of(self._monitors, pods).items():
            if self._targets.get(name) != targets:
                self._targets[name] = targets
                file = self._folder / monitors.file_name(name)
                new = file.with_suffix(".new")
                new.write_text(json.dumps(targets))
                new.rename(file)

    def close(self) -> None:
        """Ends it."""
        self.process.stop(grace_s=5)

    def now(self, expr: str, at_unix_s: float) -> dict[Labels, float]:
        """What a query answers at a moment."""
        data = self._query("query", query=expr, time=at_unix_s)
        if data["resultType"] == "scalar":
            return {frozenset(): float(data["result"][1])}
        return {_labels(each): float(each["value"][1]) for each in data["result"]}

    def over_time(self, expr: str, start_s: float, end_s: float, step_s: float) -> list[Series]:
        """What it answers from then until then."""
        data = self._query("query_range", query=expr, start=start_s, end=end_s, step=step_s)
        return [
            Series(_labels(each), {float(at): float(value) for at, value in each["values"]})
            for each in data["result"]
        ]

    def targets(self) -> list[Object]:
        """What it scrapes."""
        found: list[Object] = self._get("targets", state="active")["activeTargets"]
        return found

    def rules(self) -> list[Object]:
        """The alerts' rules and how they are."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def firing(self) -> list[Object]:
        """The alerts that fire now."""
        return [each for each in self._get("alerts")["alerts"] if each["state"] == "firing"]

    def _query(self, what: str, **words: object) -> Any:
        return self._get(what, **words)

    def _get(self, what: str, **words: object) -> Any:
        said = self._ask("POST" if "query" in words else "GET", f"/api/v1/{what}", **words)
        answer = json.loads(said)
        if answer["status"] != "success":
            raise ValueError(f"{words}: {answer['error']}")
        return answer["data"]

    def _ask(self, method: str, path: str, **words: object) -> str:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        network, body = self._cluster.site.network, urlencode(words)
        if method == "GET" and body:
            path, body = f"{path}?{body}", ""
        status, said = request(
            network, _HOST, _PORT, method, path, body=body.encode(), headers=form, timeout_s=30
        )
        if status >= 500 or (status >= 300 and not path.startswith("/api")):
            raise OSError(f"{method} {path}: {status} {said[:500].decode(errors='replace')}")
        return said.decode()

    def _list(self, kind: str) -> list[Object]:
        path = f"/apis/{monitors.GROUP}/v1/{monitors.KINDS[kind]}"
        found: list[Object] = self._cluster.api.get(path)["items"]
        return found


def _labels(found: Object) -> Labels:
    return frozenset((name, text) for name, text in found["metric"].items() if name != "__name__")
