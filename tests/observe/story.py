"""The run: one noticed preemption, three sudden ones, joins, and every program of Parcae's away.

What it does to the cluster, and when, is written down: it is a record of its own.
"""

from __future__ import annotations

import base64
import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.cluster import Cluster, NodeSpec, ProgramFailed, until
from tests.cluster.node import Node
from tests.deploy.install import NAMESPACE as SYSTEM
from tests.deploy.install import install
from tests.e2e.e2e_site import HERE, NAME, NAMESPACE, ROOT, SPOT, Site

from .compare import STEP_S
from .prometheus import Prometheus

Object = dict[str, Any]

JOB = (NAMESPACE, NAME)
BROKEN = (NAMESPACE, "broken")
INSTANCES = {"min": 2, "max": 3}
PLANNING = {"intervalSeconds": 10, "horizon": 12}
"""A sixth of the usual interval: the run sees a dozen."""
LAYERS = 6
RESTS_S = 7.0
"""What was counted is written five seconds later at most, and scraped one after that."""
SEEN_LATE_S = 1.0
"""An evaluation later than the first that held."""
PACE_S = 0.1
"""Seconds that a micro-batch takes longer than it must, which leaves the machine idle."""
NOTICE_SOURCE, NOTICE_LEAD_S = "nth-spot-itn", 120.0
"""AWS gives two minutes; docs/notices.md has the source's name."""
ZONE = "topology.kubernetes.io/zone"


def specs() -> list[NodeSpec]:
    """One node that stays, and a spot node for each instance, in two zones."""
    return [NodeSpec("safe", {ZONE: "zone-a"}), *(_spot(f"spot-{n}", n) for n in range(1, 4))]


@dataclass
class Story:
    """What happens, and what was done.

    Args:
        site: the cluster and its job.
        prometheus: it watches.
        built: archives of the images that all nodes have, by program.
        say: told what is being done.
    """

    site: Site
    prometheus: Prometheus
    built: Mapping[str, Path]
    say: Callable[[str], None]
    began_s: float = 0.0
    applied_s: float = 0.0
    """When the job was applied."""
    trained_s: float = 0.0
    """When all trained for the last time."""
    rested_s: float = 0.0
    """When the job was suspended, and all of it told."""
    ended_s: float = 0.0
    sizes: dict[str, int] = field(default_factory=dict)
    noticed: list[float] = field(default_factory=list)
    """When a node was given notice."""
    killed: list[tuple[float, str]] = field(default_factory=list)
    """When a node was killed without one, and its name."""
    board: dict[str, str] = field(default_factory=dict)
    """What was on the board at the end, by the key below the job."""
    events: list[Object] = field(default_factory=list)
    """Kubernetes events about the job, oldest first."""
    log: str = ""
    """The operator's."""
    planner_log: str = ""
    """The planners'."""

    def run(self, measure: Callable[[], dict[str, int]]) -> None:
        """From the installation to a job that is suspended, and the operator gone.

        Args:
            measure: called while all trains: the bytes of each program's answer.
        """
        self.began_s = time.time()
        self._install()
        self._start()
        self.sizes = measure()
        self._notice()
        self._kill_without_planner()
        self._too_few_and_a_broken_job()
        self._control_plane_away()
        self._suspend()
        self._collect()
        self.rested_s = time.time()
        self._operator_away()
        self.ended_s = time.time()

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.site.cluster

    def _install(self) -> None:
        self.say("install")
        install(self.cluster, built=self.built, say=lambda _: None)
        self.prometheus.follow()
        files = (ROOT / "examples" / "gpt" / "gpt.py", HERE / "e2e_train.py")
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "gpt-code", "namespace": NAMESPACE},
                "data": {file.name: file.read_text() for file in files},
            }
        )

    def _start(self) -> None:
        self.say("the job starts")
        self.site.set_pace(PACE_S)
        self.applied_s = time.time()
        self.cluster.apply(self.site.manifest(instances=INSTANCES, planning=PLANNING))
        self.site.wait_training(INSTANCES["max"], bound_s=120)
        self.site.wait(
            "layers are measured", lambda s: s["liveputSamplesPerSecond"] > 0, bound_s=60
        )

    def _notice(self) -> None:
        self.say("a noticed preemption")
        before, node = self.site.status(), self.site.some_training_node()
        pod = self.site.running()[node.name]["metadata"]["name"]
        self.noticed.append(time.time())
        node.taint("aws-node-termination-handler/spot-itn", "spot-itn-1")
        self.site.wait_revision(before["revision"], "notice")
        until(
            f"{pod} leaves in peace",
            lambda: pod not in [p["metadata"]["name"] for p in self.site.pods()],
            bound_s=40,
        )
        self._replace([node])

    def _kill_without_planner(self) -> None:
        self.say("the planner goes, then a node without a word")
        self._collect_planner_log()
        self._scale_planner(0)
        self._fires("ParcaePlannerDown")
        self._kill(1)
        self.site.wait(
            "it is told", lambda s: _degraded(s)["reason"] == "PlannerUnavailable", bound_s=60
        )
        self._fires("ParcaeJobDegraded")
        self._scale_planner(1)
        self._falls_silent("ParcaePlannerDown")

    def _too_few_and_a_broken_job(self) -> None:
        self.say("two nodes die at once; another job's code is wrong")
        self.site.wait_training(INSTANCES["max"])
        nodes = self._kill(2, replace=False)
        self.site.wait("training pauses", lambda s: s["phase"] == "Paused")
        self._take_away(nodes)  # else the other job's pod may wait on one of them
        self._apply_broken()
        self._fires("ParcaeCapacityUnderMinimum")
        self._fires("ParcaeJobFailed")
        self._add(len(nodes))

    def _control_plane_away(self) -> None:
        self.say("etcd crashes twice, and the API server is away")
        [pod] = self.site.system_pods("etcd")
        node = self.cluster.node(pod["spec"]["nodeName"])
        self.cluster.control_plane.kill("apiserver")

        def kept_down() -> bool:
            _kill_etcd(node)
            return self._is_firing("ParcaeBoardUnreachable")

        # Started again at once after the first crash, ten seconds later after the second.
        until(
            "ParcaeBoardUnreachable to fire while etcd crashes whenever it runs",
            kept_down,
            bound_s=90,
        )
        self._fires("ParcaeApiServerUnreachable")
        self.cluster.control_plane.start("apiserver")
        self.cluster.control_plane.wait_ready("apiserver")
        self._falls_silent("ParcaeBoardUnreachable")
        self._falls_silent("ParcaeApiServerUnreachable")
        step = self.site.status()["step"]
        self.site.wait_step(step + 10)

    def _suspend(self) -> None:
        self.say("the job is suspended")
        self.site.wait_training(INSTANCES["max"])
        self.trained_s = time.time()
        self.site.patch({"suspend": True})
        self.site.wait("it is suspended", lambda s: s["phase"] == "Suspended")
        until("its pods are given back", lambda: not self.site.pods(), bound_s=60)

    def _collect(self) -> None:
        """What is left of the run, read once."""
        self.board = self._read_board()
        found = self.cluster.api.get(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")
        self.events = sorted(
            (e for e in found["items"] if e.get("regarding", {}).get("name") == NAME),
            key=lambda e: str(e.get("eventTime")),
        )
        self.log = self.cluster.kubectl("logs", "-n", SYSTEM, "deployment/parcae-operator")
        self._collect_planner_log()
        last, since_s = self.site.status(), time.monotonic()

        def rests() -> bool:
            nonlocal last, since_s
            now = self.site.status()
            if now != last:
                last, since_s = now, time.monotonic()
            return time.monotonic() - since_s >= RESTS_S

        until("the status to rest", rests, bound_s=60, every_s=0.5)

    def _collect_planner_log(self) -> None:
        """What the pod that runs has said: it is gone with it."""
        self.planner_log += self.cluster.kubectl("logs", "-n", SYSTEM, "deployment/parcae-planner")

    def _operator_away(self) -> None:
        self.say("the operator goes")
        deployment = "deployment/parcae-operator"
        self.cluster.kubectl("scale", "-n", SYSTEM, deployment, "--replicas=0")
        self._fires("ParcaeOperatorAbsent")

    def _read_board(self) -> dict[str, str]:
        prefix = f"/parcae/{NAMESPACE}/{NAME}/"
        [line] = self.site._etcdctl("get", "--prefix", "--write-out=json", prefix)
        found: dict[str, str] = {}
        for each in json.loads(line).get("kvs", ()):
            key, value = (base64.b64decode(each[part]).decode() for part in ("key", "value"))
            found[key.removeprefix(prefix)] = value
        return found

    def _kill(self, count: int, *, replace: bool = True) -> list[Node]:
        before = self.site.status()
        nodes = [self.cluster.node(name) for name in sorted(self.site.running())[:count]]
        for node in nodes:
            node.kill()
            self.killed.append((time.time(), node.name))
        self.site.wait(
            "the loss is answered", lambda s: s["revision"] > before["revision"], bound_s=60
        )
        if replace:
            self._replace(nodes)
        return nodes

    def _replace(self, nodes: list[Node]) -> None:
        """Others come for them."""
        self._take_away(nodes)
        self._add(len(nodes))

    def _take_away(self, nodes: list[Node]) -> None:
        """Their machines are gone for good."""
        for node in nodes:
            node.remove(collect_pods=True)

    def _add(self, count: int) -> None:
        numbers = [next(self.site._names) for _ in range(count)]
        self.cluster.add_nodes([_spot(f"spot-{n}", n) for n in numbers])

    def _scale_planner(self, replicas: int) -> None:
        deployment = "deployment/parcae-planner"
        self.cluster.kubectl("scale", "-n", SYSTEM, deployment, f"--replicas={replicas}")

    def _apply_broken(self) -> None:
        """A job whose code cannot be loaded: it fails, and is not tried again."""
        job = self.site.manifest(instances={"min": 1, "max": 1}, backoffLimit=0)
        job["metadata"]["name"] = BROKEN[1]
        job["spec"]["entrypoint"]["function"] = "e2e_train:nothing"
        self.cluster.apply(job)

    def _fires(self, alert: str) -> None:
        until(f"{alert} to fire", lambda: self._is_firing(alert), bound_s=90)

    def _falls_silent(self, alert: str) -> None:
        until(f"{alert} to be silent", lambda: alert not in self._firing(), bound_s=90)

    def _is_firing(self, alert: str) -> bool:
        """And its expression has held so long that some moment which is compared saw it."""
        held_since = self._firing().get(alert, math.inf)
        return time.time() - held_since > STEP_S + SEEN_LATE_S

    def _firing(self) -> dict[str, float]:
        """Since when the expression of each alert that fires has held."""
        return {
            alert["labels"]["alertname"]: datetime.fromisoformat(alert["activeAt"]).timestamp()
            for alert in self.prometheus.firing()
        }


def _spot(name: str, number: int) -> NodeSpec:
    zone = "ab"[number % 2]
    labels = {**SPOT, ZONE: f"zone-{zone}"}
    return NodeSpec(name, labels, provider_id=f"aws:///zone-{zone}/{name}")


def _kill_etcd(node: Node) -> None:
    with suppress(ProgramFailed):  # it does not run at this moment
        node.inside(["pkill", "-KILL", "-f", "etcd --name"])


def _degraded(status: Object) -> Object:
    conditions = status.get("conditions", [])
    found: Object = next((c for c in conditions if c["type"] == "Degraded"), {"reason": ""})
    return found


def stage(folder: Path) -> Path:
    """A folder that all agent pods share: checkpoints, records, the pace."""
    for each in (folder, folder / "ledger", folder / "checkpoints"):
        each.mkdir(exist_ok=True)
        each.chmod(0o777)
    return folder
