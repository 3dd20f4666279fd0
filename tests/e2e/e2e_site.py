"""A real cluster with Parcae installed and one job on it, as the scenario sees and disturbs it."""

from __future__ import annotations

import base64
import itertools
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import yaml
from tests.cluster.cluster import Cluster
from tests.cluster.node import Node
from tests.cluster.waiting import until
from tests.deploy.install import NAMESPACE as SYSTEM

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NAME, NAMESPACE = "gpt", "default"
SPOT = {"cloud.google.com/gke-spot": "true"}
STEPS = 1000
PACE_S = 0.35
"""Seconds that a micro-batch takes longer than it must: the scenario has time to happen."""

Object = dict[str, Any]


@dataclass
class Row:
    """A line of the table that the run prints."""

    what: str
    measured: str
    target: str = ""


@dataclass
class Site:
    """The cluster, the shared folder, and what was measured."""

    cluster: Cluster
    stage: Path
    """A folder of the machine that all agent pods see as /parcae: records, checkpoints, cues."""
    rows: list[Row] = field(default_factory=list)
    broken: str = ""
    """The step of the scenario that failed: those after it make no sense."""
    _names: Any = field(default_factory=lambda: itertools.count(int(time.time()) % 100_000))

    def note(self, what: str, measured: str, target: str = "") -> None:
        """Add a line to the table."""
        self.rows.append(Row(what, measured, target))

    # The job.

    def manifest(self, **spec: Any) -> Object:
        """The scenario's job."""
        job: Object = yaml.safe_load((HERE / "job.yaml").read_text())
        job["spec"].update(spec)
        job["spec"]["entrypoint"]["args"]["steps"] = STEPS
        container = job["spec"]["template"]["spec"]["containers"][0]
        container["env"].append({"name": "E2E_STAGE", "value": "/parcae"})
        [stage] = job["spec"]["template"]["spec"]["volumes"]
        stage["hostPath"] = {"path": str(self.stage)}
        return job

    def get(self) -> Object:
        """The job's object."""
        found = self.cluster.api.find(
            f"/apis/parcae.dev/v1alpha1/namespaces/{NAMESPACE}/parcaejobs/{NAME}"
        )
        return found or {}

    def status(self) -> Object:
        """Its status."""
        found: Object = self.get().get("status") or {}
        return found

    def condition(self, type_: str) -> Object:
        """One of its conditions, or an empty one."""
        conditions = self.status().get("conditions", [])
        return next((c for c in conditions if c["type"] == type_), {})

    def patch(self, spec: Object) -> None:
        """Edit the job."""
        change = json.dumps({"spec": spec})
        self.cluster.kubectl("patch", "pj", NAME, "--type=merge", f"--patch={change}")

    def pods(self) -> list[Object]:
        """Its agent pods that are not about to go."""
        found = self.cluster.api.get(
            f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=parcae.dev/job%3D{NAME}"
        )
        return [p for p in found["items"] if not p["metadata"].get("deletionTimestamp")]

    def running(self) -> dict[str, Object]:
        """Its running pods by node."""
        return {p["spec"]["nodeName"]: p for p in self.pods() if p["status"]["phase"] == "Running"}

    def all_pods(self) -> list[Object]:
        """All pods of the namespace, those about to go too."""
        found: list[Object] = self.cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
        return found

    # What serves it.

    def system_pods(self, component: str) -> list[Object]:
        """Pods of the operator, the planner or etcd."""
        found: list[Object] = self.cluster.api.get(
            f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector="
            f"app.kubernetes.io/component%3D{component}"
        )["items"]
        return found

    def kill_container(self, component: str, program: str) -> None:
        """SIGKILL the process of a component; its kubelet starts it again."""
        [pod] = self.system_pods(component)
        node = self.cluster.node(pod["spec"]["nodeName"])
        node.inside(["pkill", "-KILL", "-f", program])

    def board_keys(self) -> list[str]:
        """What etcd holds of the job."""
        return self._etcdctl("get", "--prefix", "--keys-only", f"/parcae/{NAMESPACE}/{NAME}/")

    def board_users(self) -> list[str]:
        """Whom etcd knows."""
        return self._etcdctl("user", "list")

    def _etcdctl(self, *words: str) -> list[str]:
        """What it says to the operator's own user, a line each."""
        [pod] = self.system_pods("etcd")
        secret = self.cluster.api.get(f"/api/v1/namespaces/{SYSTEM}/secrets/parcae-board")
        user, password = (
            base64.b64decode(secret["data"][name]).decode() for name in ("user", "password")
        )
        argv = ["etcdctl", "--endpoints=https://127.0.0.1:2379", "--cacert=/tls/ca.crt"]
        argv += [f"--user={user}:{password}", *words]
        found = self.cluster.exec(pod["metadata"]["name"], *argv, namespace=SYSTEM)
        return [line for line in found.splitlines() if line]

    # Waiting.

    def wait(self, what: str, condition: Callable[[Object], Any], *, bound_s: float = 60) -> Object:
        """The status once it is as wanted."""
        seen: list[Object] = [{}]

        def holds() -> bool:
            seen[0] = self.status()
            return bool(condition(seen[0]))

        try:
            until(what, holds, bound_s=bound_s, every_s=0.1)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.describe()}") from error
        return seen[0]

    def wait_training(self, instances: int, *, bound_s: float = 90) -> Object:
        """The status once so many instances train, and go on."""
        status = self.wait(
            f"{instances} instances train",
            lambda s: is_ready(s) and all_there(s, instances),
            bound_s=bound_s,
        )
        return self.wait_step(status["step"] + 1)

    def wait_step(self, step: int, *, bound_s: float = 60) -> Object:
        """The status once a step is committed."""
        return self.wait(f"step {step}", lambda s: s.get("step", 0) >= step, bound_s=bound_s)

    def wait_revision(self, above: int, reason: str, *, bound_s: float = 30) -> Object:
        """The status once a newer plan with that reason trains; the decision itself."""

        def found(status: Object) -> Object | None:
            newer = [d for d in status.get("decisions", []) if d["revision"] > above]
            return next((d for d in newer if d["reason"] == reason), None)

        def trains(status: Object) -> bool:
            decision, formed = found(status), status.get("lastMigration") or {}
            return decision is not None and formed.get("revision", 0) >= decision["revision"]

        status = self.wait(
            f"a plan for {reason} after revision {above} trains", trains, bound_s=bound_s
        )
        decision = found(status)
        assert decision is not None
        return decision

    def events(self, reason: str) -> list[Object]:
        """Events about the job, oldest first."""
        found = self.cluster.api.get(f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events")
        ours = [e for e in found["items"] if e.get("regarding", {}).get("name") == NAME]
        return sorted(
            (e for e in ours if e["reason"] == reason), key=lambda e: str(e.get("eventTime"))
        )

    # Nodes.

    def add_spot_node(self) -> Node:
        """A new instance."""
        name = f"spot-{next(self._names)}"
        node = self.cluster.add_node(name, SPOT, provider_id=f"aws:///zone-a/{name}")
        self.serve_metadata(node)
        return node

    def serve_metadata(self, node: Node) -> None:
        """Its cloud's metadata service, at the address where agents look for it."""
        program = ROOT / "tests" / "support" / "metadata_servers.py"
        where = ["--bind", "169.254.169.254:80", "--control", str(self._control(node))]
        node.serve_metadata([sys.executable, program, "aws", *where])

    def tell_metadata(self, node: Node, what: str) -> None:
        """Have the metadata service of a node say something: ``notice`` or ``clear``."""
        transport = httpx.HTTPTransport(uds=str(self._control(node)))
        with httpx.Client(transport=transport) as client:
            client.post(f"http://control/{what}").raise_for_status()

    def _control(self, node: Node) -> Path:
        return self.stage / f"imds-{node.name}.sock"

    def some_training_node(self) -> Node:
        """A node whose agent trains."""
        nodes = sorted(self.running())
        assert nodes, self.describe()
        return self.cluster.node(nodes[0])

    def replace(self, node: Node) -> None:
        """A node's machine is taken away, and another comes."""
        node.remove(collect_pods=True)
        self.add_spot_node()

    # Telling.

    def set_pace(self, pace_s: float) -> None:
        """How slow training is from now on."""
        (self.stage / "pace").write_text(str(pace_s))

    def describe(self) -> str:
        """All that tells why something did not happen."""
        lines = [json.dumps(self.status(), indent=1)[:4000]]
        for pod in self.pods():
            where = pod["spec"].get("nodeName", "")
            lines.append(f"{pod['metadata']['name']} {where} {pod['status']['phase']}")
        for what in ("deployment/parcae-operator",):
            try:
                lines.append(self.cluster.kubectl("logs", "-n", SYSTEM, what, "--tail=40"))
            except Exception as error:
                lines.append(f"no log of {what}: {error}")
        return "\n".join(lines)


def all_there(status: Mapping[str, Any], instances: int) -> bool:
    """Whether so many are ready, in the grid or beside it, and none comes or goes."""
    counts = status["instanceCounts"]
    settled = counts["starting"] == counts["leaving"] == 0
    return bool(settled and counts["training"] + counts["standby"] >= instances)


def is_ready(status: Mapping[str, Any]) -> bool:
    """Whether the job trains."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))


def unix_s(text: str) -> float:
    """A Kubernetes time."""
    return datetime.fromisoformat(text).timestamp()


def since(start_s: float) -> str:
    """Seconds since a monotonic time, for the table."""
    return f"{time.monotonic() - start_s:.1f} s"
