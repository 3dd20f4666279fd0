"""One release and one job that trains through all that happens to it."""

from __future__ import annotations

import itertools
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import Cluster, ProgramFailed, until
from tests.cluster.pods import server
from tests.deploy.install import ROOT, VALUES

RELEASE = SYSTEM = "parcae"
TEAM, JOB = "team", "gpt"
CHART = str(ROOT / "charts" / "parcae")
PREVIOUS = str(Path(__file__).parent.parent / "deploy" / "previous" / "parcae-0.1.0.tgz")
SPOT = {"cloud.google.com/gke-spot": "true"}
WAIT_S = 120
PACE_S = 0.02
_LISTENING = """
import re
from pathlib import Path
text = ''.join(Path('/proc/net', name).read_text() for name in ('tcp', 'tcp6'))
ports = {int(port, 16) for port in re.findall(r':(\\w{4}) \\w+:0000 0A', text)}
print(*sorted(ports))
"""
_CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2).close()
except OSError as error:
    sys.exit(f'no connection: {error}')
"""

Object = dict[str, Any]


@dataclass
class Story:
    """The cluster, what agents record, and what was measured."""

    cluster: Cluster
    stage: Path
    figures: dict[str, str] = field(default_factory=dict)
    broken: str = ""
    """The chapter that failed: those after it make no sense."""

    def furnish(self) -> None:
        """Namespaces, a volume for etcd, the example's code, strangers."""
        for folder in (self.stage, self.stage / "ledger", self.stage / "checkpoints"):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o777)
        (self.stage / "pace").write_text(str(PACE_S))
        for name, label in (
            (SYSTEM, {"pod-security.kubernetes.io/enforce": "restricted"}),
            (TEAM, {}),
        ):
            self.cluster.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": name, "labels": label},
                }
            )
        self.cluster.node("safe").inside(["mkdir", "-p", "/var/lib/volumes/0"])
        self.cluster.apply(_volume())
        files = (ROOT / "examples" / "gpt" / "gpt.py", ROOT / "tests" / "e2e" / "e2e_train.py")
        code = {file.name: file.read_text() for file in files}
        metadata = {"name": "gpt-code", "namespace": TEAM}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": code}
        )
        for namespace in ("default", TEAM):
            pod = server("stranger", "safe")
            pod["metadata"]["namespace"] = namespace
            self.cluster.apply(pod)
            self.cluster.wait_pod("stranger", namespace)

    # The release.

    def helm(self, verb: str, *words: str) -> float:
        """Waits until all is ready; seconds it took."""
        start_s = time.monotonic()
        wait = ["--wait", f"--timeout={WAIT_S}s"]
        self.cluster.helm(
            verb, RELEASE, *words, f"--namespace={SYSTEM}", *wait, bound_s=WAIT_S + 30
        )
        return time.monotonic() - start_s

    def install(self, chart: str, verb: str = "install") -> float:
        """With a volume for etcd, as on a cloud."""
        settings = ["etcd.persistence.enabled=true"]
        return self.helm(verb, chart, f"--values={VALUES}", *(f"--set={each}" for each in settings))

    # The job.

    def apply_job(self) -> None:
        """It would train for hours."""
        job: Object = yaml.safe_load((ROOT / "tests" / "e2e" / "job.yaml").read_text())
        job["metadata"]["namespace"] = TEAM
        spec = job["spec"]
        spec["instances"] = {"min": 2, "max": 2}
        spec["entrypoint"]["args"]["steps"] = 1_000_000
        pod = spec["template"]["spec"]
        pod["containers"][0]["env"].append({"name": "E2E_STAGE", "value": "/parcae"})
        pod["volumes"][0]["hostPath"] = {"path": str(self.stage)}
        self.cluster.apply(job)

    def status(self) -> Object:
        """As the API server has it."""
        path = f"/apis/parcae.dev/v1alpha1/namespaces/{TEAM}/parcaejobs/{JOB}"
        found: Object = (self.cluster.api.find(path) or {}).get("status") or {}
        return found

    def commits(self) -> list[float]:
        """When each step was first committed, by the agents' own records; Unix time in seconds."""
        first: dict[int, float] = {}
        for file in (self.stage / "ledger").glob("*.jsonl"):
            for text in file.read_text().splitlines():
                line = _read(text)
                if line.get("kind") == "commit":
                    step, at = int(line["step"]), float(line["at_unix_s"])
                    first[step] = min(at, first.get(step, at))
        return [first[step] for step in sorted(first)]

    def wait_steps(self, more: int) -> None:
        """Until so many more steps are committed, whoever looks on."""
        want = len(self.commits()) + more
        self.wait(f"{more} more steps", lambda: len(self.commits()) >= want)

    def wait(self, what: str, holds: Callable[[], Any], bound_s: float = 90) -> None:
        """Until something holds; where it does not, with what the job's status says."""
        try:
            until(what, holds, bound_s=bound_s)
        except Exception as error:
            raise AssertionError(f"{error}\n{json.dumps(self.status(), indent=1)}") from error

    def note_pause(self, what: str, since_unix_s: float) -> None:
        """How long the longest wait for a step was since then, beside a usual one."""
        commits = self.commits()
        gaps = [(b, b - a) for a, b in itertools.pairwise(commits)]
        usual_s = statistics.median(gap for _, gap in gaps)
        longest_s = max(gap for at, gap in gaps if at >= since_unix_s)
        self.figures[f"{what}: the longest step"] = f"{longest_s:.2f} s (median {usual_s:.2f} s)"

    def pods(self) -> dict[str, Object]:
        """Running agents by name."""
        found = self.cluster.api.get(
            f"/api/v1/namespaces/{TEAM}/pods?labelSelector=parcae.dev/job%3D{JOB}"
        )
        items = [pod for pod in found["items"] if pod["status"]["phase"] == "Running"]
        return {pod["metadata"]["name"]: pod for pod in items}

    def program(self, component: str) -> list[Object]:
        """Pods of one of our programs, also those that are about to end."""
        selector = f"app.kubernetes.io/component%3D{component}"
        found = self.cluster.api.get(f"/api/v1/namespaces/{SYSTEM}/pods?labelSelector={selector}")
        items: list[Object] = found["items"]
        return items

    # Who reaches whom.

    def listening(self, pod: str) -> list[int]:
        """The ports of an agent's workers."""
        said = self.cluster.exec(pod, "python", "-c", _LISTENING, namespace=TEAM)
        return [int(port) for port in said.split()]

    def reaches(self, stranger: str, namespace: str, address: str, port: int) -> bool:
        """Whether a pod gets a connection."""
        words = ("python3", "-c", _CONNECT, address, str(port))
        try:
            self.cluster.exec(stranger, *words, namespace=namespace)
        except ProgramFailed as error:
            if "no connection" not in str(error):
                raise  # it could not even try
            return False
        return True

    def address(self, component: str) -> str:
        """Of the pod of one of our programs."""
        [pod] = self.program(component)
        return str(pod["status"]["podIP"])


def _volume() -> Object:
    """A disk of the node that stays."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["safe"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "local": {"path": "/var/lib/volumes/0"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def _read(text: str) -> Object:
    try:
        found: Object = json.loads(text)
    except ValueError:  # being written
        return {}
    return found
