"""``python -m benchmarks.operator_load``: the operator under load, on a real API server and etcd.

1,000 nodes, 50 jobs, 2,000 pods. Nodes and agents are played: nodes as objects, agents as entries
on the board; everything that the operator talks to is real, its planner too. Needs what the test
cluster needs.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from tests.cluster.cluster import Cluster
from tests.cluster.waiting import until

from benchmarks.report import Row, print_table
from parcae_agent.launch import die_with_parent
from parcae_api.board import JobBoard
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_lease import Lease
from parcae_api.membership import AgentState, Holding, Membership, WorkerInfo
from parcae_api.plan import Plan
from parcae_api.profile import LayerProfile, Profile
from parcae_api.progress import Progress
from parcae_cli.etcd_server import EtcdServer

JOBS, NODES, PODS_A_JOB = 50, 1000, 40
HEARTBEATS, SIGNALS = 1000, 100
_WINDOW_S = 8.0
GROUP = "/apis/parcae.dev/v1alpha1/namespaces/default/parcaejobs"


class Fleet:
    """The played nodes and agents."""

    def __init__(self, cluster: Cluster, client: EtcdClient) -> None:
        self.api = cluster.api
        self._client = client
        self.boards = {n: JobBoard(client, "default", f"job-{n}") for n in range(JOBS)}
        self._leases: dict[int, Lease] = {}
        self.plans: dict[int, Plan] = {}
        self.published: dict[tuple[int, int], float] = {}
        """(job, revision) → when its plan was seen on the board."""
        self.node_of: dict[tuple[int, str], str] = {}
        self._lock = threading.Lock()

    def make_nodes(self) -> None:
        """As large as a cloud's."""
        for n in range(NODES):
            self.api.create("/api/v1/nodes", _node(n))
            # Admission taints every new node until the controller manager, which does not run
            # here, sees that it is ready.
            self.api.patch(f"/api/v1/nodes/node-{n}", {"spec": {"taints": []}})

    def make_jobs(self) -> None:
        """All at once."""
        for n in range(JOBS):
            self.api.create(GROUP, _job(n))

    def run_pods(self) -> None:
        """Bind every pod to a node, say that it runs, and put its agent on the board."""
        until("all pods are asked for", self._all_pods, bound_s=300, every_s=1.0)
        for index, pod in enumerate(self._all_pods()):
            name, node = pod["metadata"]["name"], f"node-{index % NODES}"
            path = f"/api/v1/namespaces/default/pods/{name}"
            self.api.create(
                f"{path}/binding",
                {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                },
            )
            self.api.patch(f"{path}/status", {"status": {"phase": "Running"}})
            job = int(pod["metadata"]["labels"]["parcae.dev/job"].removeprefix("job-"))
            self.node_of[job, name] = node
        for n, board in self.boards.items():
            board.put_profile(_profile())
            self._leases[n] = self._client.lease(60)
            for job, pod_name in list(self.node_of):
                if job == n:
                    board.put_agent(_agent(pod_name), self._leases[n])

    def follow(self) -> None:
        """Answer every plan as its workers would, and remember when it came."""
        for n, board in self.boards.items():

            def seen(change: Any, n: int = n, board: JobBoard = board) -> None:
                if isinstance(change.model, Plan):
                    self._obey(n, board, change.model)

            board.watch(seen, on_error=lambda error: print("watch:", error))

    def _obey(self, n: int, board: JobBoard, plan: Plan) -> None:
        with self._lock:
            self.published[n, plan.revision] = time.monotonic()
            self.plans[n] = plan
        board.put_progress(
            Progress(revision=plan.revision, step=plan.revision, samples=plan.revision)
        )

    def _all_pods(self) -> list[Any]:
        found: list[Any] = self.api.get("/api/v1/namespaces/default/pods")["items"]
        return found if len(found) >= JOBS * PODS_A_JOB else []


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        cluster = stack.enter_context(Cluster.up(f"bench-{os.getpid()}", [], services=False))
        # Played nodes have no kubelets, and their pods are bound here.
        for component in ("controller-manager", "scheduler"):
            cluster.control_plane.kill(component)  # type: ignore[arg-type]
        cluster.kubectl("apply", "-f", str(Path("crds/parcae.dev_parcaejobs.yaml").resolve()))
        server = stack.enter_context(EtcdServer(folder / "etcd", folder / "etcd.log"))
        client = stack.enter_context(EtcdClient([server.endpoint]))
        planner = stack.enter_context(_planner(folder))
        fleet = Fleet(cluster, client)
        rows: list[Row] = []
        environ = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "PARCAE_BOARD": server.endpoint,
            "PARCAE_PLANNER": planner,
            "PARCAE_LIVENESS_PORT": "0",
        }
        with _operator(environ, folder) as operator:
            fleet.make_nodes()
            fleet.follow()
            fleet.make_jobs()
            fleet.run_pods()
            until("all jobs train", lambda: len(fleet.plans) == JOBS, bound_s=300, every_s=1.0)
            rows += _measure(fleet, operator)
            operator.kill()
        rows.append(_measure_restart(fleet, environ, folder))
        print_table(rows)


def _measure(fleet: Fleet, operator: psutil.Process) -> list[Row]:
    cpu_s, events = _heartbeats(fleet, operator)
    answers_s = _signals(fleet)
    event_ms = 1e3 * cpu_s / events
    memory_mb = operator.memory_info().rss / 1e6
    worst = sorted(answers_s)[int(len(answers_s) * 0.99) - 1]
    return [
        Row(
            "operator memory, 1,000 nodes, 2,000 pods, 50 jobs",
            f"{memory_mb:.0f} MB",
            "<= 300 MB",
            memory_mb <= 300,
        ),
        Row("CPU per node event", f"{event_ms:.1f} ms", "<= 3 ms", event_ms <= 3),
        Row(
            "node signal to the new plan on the board, the same load",
            f"p99 {worst:.2f} s (median {statistics.median(answers_s):.2f})",
            "p99 1 s",
            worst <= 1,
        ),
    ]


def _heartbeats(fleet: Fleet, operator: psutil.Process) -> tuple[float, int]:
    """CPU seconds that node status updates cost, above what idleness costs; and how many."""
    _await_calm(operator)
    started_s, before = time.monotonic(), _cpu_s(operator)
    for n in range(HEARTBEATS):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        fleet.api.patch(
            f"/api/v1/nodes/node-{n % NODES}/status",
            {"status": {"conditions": [{**condition, "lastHeartbeatTime": now}]}},
        )
    took_s, busy_s = time.monotonic() - started_s, _cpu_s(operator) - before
    # The same time again with no event.
    before = _cpu_s(operator)
    threading.Event().wait(took_s)
    return busy_s - (_cpu_s(operator) - before), HEARTBEATS


def _await_calm(operator: psutil.Process) -> None:
    """Until what the jobs' beginning has caused is over: two windows in which it works alike."""
    last_s = float("inf")
    while True:
        before = _cpu_s(operator)
        threading.Event().wait(_WINDOW_S)
        spent_s = _cpu_s(operator) - before
        if abs(spent_s - last_s) < 0.1 * _WINDOW_S:
            return
        last_s = spent_s


def _signals(fleet: Fleet) -> list[float]:
    """Seconds from a taint on a node to the next plan of a job that trains there."""
    answers, told = [], set()
    for turn in range(SIGNALS):
        job = turn % JOBS
        plan = fleet.plans[job]
        members = (fleet.node_of[job, worker.rpartition("-")[0]] for worker in plan.workers)
        node = next(node for node in members if node not in told)
        told.add(node)
        started_s = time.monotonic()
        taint = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
        fleet.api.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [{**taint, "value": "x"}]}})

        def is_answered(job: int = job, revision: int = plan.revision) -> bool:
            return fleet.plans[job].revision > revision

        until("a plan answers it", is_answered, bound_s=30, every_s=0.005)
        answers.append(fleet.published[job, fleet.plans[job].revision] - started_s)
    return answers


def _measure_restart(fleet: Fleet, environ: dict[str, str], folder: Path) -> Row:
    def leaders() -> set[str]:
        found = (board.leader() for board in fleet.boards.values())
        return {leader.identity for leader in found if leader is not None}

    old = leaders()
    started_s = time.monotonic()
    with _operator(environ, folder):

        def adopted() -> bool:
            found = [board.leader() for board in fleet.boards.values()]
            return all(leader is not None and leader.identity not in old for leader in found)

        until("all jobs are adopted", adopted, bound_s=120, every_s=0.2)
        took_s = time.monotonic() - started_s
    return Row(
        "operator killed; another start to 50 jobs adopted",
        f"{took_s:.1f} s",
        "<= 15 s",
        took_s <= 15,
    )


@contextmanager
def _operator(environ: dict[str, str], folder: Path) -> Iterator[psutil.Process]:
    with _program([sys.executable, "-m", "parcae_operator"], folder / "operator.log", environ) as p:
        yield psutil.Process(p.pid)


@contextmanager
def _planner(folder: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "parcae_cli.main", "planner", "serve", "--port", str(port)]
    with _program(command, folder / "planner.log", dict(os.environ)):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _program(
    command: list[str], log_file: Path, environ: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A program of ours that ends with this one, however that ends."""
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            command,
            env=environ,
            stdout=log,
            stderr=log,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _node(n: int) -> dict[str, Any]:
    images = [
        {"names": [f"registry.example/team/image-{k}@sha256:{k:064x}"], "sizeBytes": 10**8 + k}
        for k in range(50)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{n}",
            "labels": {"cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": "a"},
        },
        "spec": {"providerID": f"gce://test/a/node-{n}"},
        "status": {
            "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
            "capacity": {"cpu": "8", "memory": "64Gi", "pods": "110"},
            "conditions": [
                {
                    "type": kind,
                    "status": "True" if kind == "Ready" else "False",
                    "reason": "Kubelet",
                    "message": "as the kubelet says it",
                }
                for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
            ],
            "images": images,
        },
    }


def _job(n: int) -> dict[str, Any]:
    return {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {"name": f"job-{n}"},
        "spec": {
            "instances": {"min": 2, "max": PODS_A_JOB},
            "entrypoint": {"function": "train:gpt"},
            "template": {"spec": {"containers": [{"name": "agent", "image": "agent:1"}]}},
        },
    }


def _profile() -> Profile:
    layers = tuple(
        LayerProfile(
            name=f"layer{k}",
            param_bytes=10**8,
            state_bytes=3 * 10**8,
            activation_bytes=10**6,
            seconds=0.01,
        )
        for k in range(24)
    )
    return Profile(
        layers=layers, num_micro_batches=128, micro_batch_samples=4, total_steps=1_000_000
    )


def _agent(pod: str) -> Membership:
    worker = WorkerInfo(
        id=f"{pod}-1/0",
        ready=True,
        holding=Holding(revision=1, first=0, last=24, step=1),
    )
    return Membership(
        incarnation=f"{pod}-1",
        pod=pod,
        node="",
        node_uid="",
        address="127.0.0.1",
        state=AgentState.TRAINING,
        workers=(worker,),
    )


if __name__ == "__main__":
    main()
