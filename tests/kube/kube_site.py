"""Operators at work on one fake API server and one real board; agents written by hand."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from kube_fakes import FakeApi, until
from kube_objects import Object, job_body, make_node

from parcae_api.board import JobBoard
from parcae_api.board_access import BoardAccess
from parcae_api.etcd import EtcdClient
from parcae_api.etcd_lease import Lease
from parcae_api.job_status import JobStatus
from parcae_api.membership import AgentState, Holding, Membership, WorkerInfo
from parcae_api.plan import Plan
from parcae_api.planning import Planner
from parcae_api.profile import LayerProfile, Profile
from parcae_api.progress import Progress
from parcae_operator.claim import Claim
from parcae_operator.kube.board_users import BoardUsers
from parcae_operator.kube.jobs import Jobs
from parcae_operator.kube.network_policy import NetworkRules
from parcae_operator.kube.objects import read_status
from parcae_operator.kube.services import Services
from parcae_operator.kube.settings import OperatorSettings
from parcae_operator.kube.store import ClusterStore
from parcae_operator.metrics.meter import Meter

LAYERS, TOTAL_STEPS = 6, 100
_names = itertools.count()


class Operator:
    """One program: its own store, claim and connection to the board."""

    def __init__(self, site: KubeSite, name: str) -> None:
        self.site = site
        self.settings = OperatorSettings(
            board=site.endpoint,
            identity=name,
            resync_seconds=site.resync_seconds,
            node_resync_seconds=0.2,
            board_access=Path("/access") if site.access.login else None,
            network_policy=site.network_policy,
        )
        self.client = EtcdClient(
            [site.endpoint], login=site.access.login, timeout_s=0.5, patience_s=1.0
        )
        self.claim = Claim(self.client, name)
        self.meter = Meter()
        self.store = ClusterStore(
            on_change=lambda key: self.jobs.wake(key), on_worse=self.meter.worsened
        )
        self.jobs = Jobs(
            Services(
                settings=self.settings,
                api=site.api,  # type: ignore[arg-type]
                store=self.store,
                board=self.client,
                users=BoardUsers(self.client, site.access) if site.access.login else None,
                claim=self.claim,
                planner=site.planner,
                loop=asyncio.get_running_loop(),
                meter=self.meter,
            )
        )
        self.is_deaf = False
        """Its watches tell nothing."""

    async def end(self) -> None:
        """In peace, as on SIGTERM."""
        self.site.operators.remove(self)
        await self.jobs.close()
        await asyncio.to_thread(self.claim.give_up)
        await asyncio.to_thread(self.client.close)

    async def die(self) -> None:
        """Its lease lives on for a while."""
        self.site.operators.remove(self)
        await self.jobs.close()
        await asyncio.to_thread(self.client.close)


class KubeSite:
    """One job, ``gpt`` or the like, by its name."""

    def __init__(self, endpoint: str, access: BoardAccess | None = None) -> None:
        self.endpoint = endpoint
        self.access = access or BoardAccess()
        self.api = FakeApi()
        self.api.on_pod, self.api.on_job = self._pod_event, self._job_event
        self.name = f"job{next(_names)}"
        self.operators: list[Operator] = []
        self.planner: Planner | None = None
        self.network_policy: NetworkRules | None = None
        self.resync_seconds = 0.2
        self.client = EtcdClient(
            [endpoint], login=self.access.login, timeout_s=1.0, patience_s=20.0
        )
        self.board = JobBoard(self.client, "team", self.name)
        self._leases: dict[str, Lease] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for operator in list(self.operators):
            await operator.end()
        await asyncio.to_thread(self.client.close)

    def _pod_event(self, kind: str, pod: Object) -> None:
        for operator in self.operators:
            if not operator.is_deaf:
                store = operator.store
                (store.lost_pod if kind == "DELETED" else store.saw_pod)(pod)

    def _job_event(self, kind: str, body: Object) -> None:
        for operator in self.operators:
            if not operator.is_deaf:
                (operator.jobs.lost if kind == "DELETED" else operator.jobs.saw)(body)

    # Operators.

    def start(self, name: str = "operator-0") -> Operator:
        operator = Operator(self, name)
        self.operators.append(operator)
        operator.jobs.start()
        return operator

    # What the user does.

    def apply(self, uid: str = "", **spec: object) -> None:
        body = job_body(self.name, **spec)
        body["metadata"]["uid"] = uid or f"uid-of-{self.name}"
        self.api.put_job(body, "ADDED")

    def edit(self, **spec: object) -> None:
        self.api.edit_job(self.name, **spec)

    def delete(self) -> None:
        self.api.remove_job(self.name)

    @property
    def is_there(self) -> bool:
        return self.name in self.api.jobs_by_name

    @property
    def status(self) -> JobStatus:
        return read_status(self.api.jobs_by_name[self.name])

    @property
    def phase(self) -> str:
        return str(self.status.phase)

    def reason(self, type_: str = "Degraded") -> str:
        """Of a condition, where it holds."""
        return next(
            (c.reason for c in self.status.conditions if c.type == type_ and c.status == "True"), ""
        )

    @property
    def pods(self) -> list[str]:
        return list(self.api.pods_by_name)

    # What agents do.

    def say(
        self, pod: str, *, holding: Holding | None = None, idle: int = 0, ready: bool = True
    ) -> None:
        if pod not in self._leases:
            self._leases[pod] = self.client.lease(60)
        worker = WorkerInfo(
            id=f"{pod}-0/0", ready=ready, holding=holding, saved=holding, idle_revision=idle
        )
        member = Membership(
            incarnation=f"{pod}-0",
            pod=pod,
            node=f"node-of-{pod}",
            node_uid=f"uid-of-node-of-{pod}",
            address="10.0.0.1",
            state=AgentState.STANDBY,
            workers=(worker,),
        )
        self.board.put_agent(member, self._leases[pod])

    def run_pods(self) -> None:
        """All that wait get nodes, and their agents become ready."""
        if self.board.profile() is None:
            self.board.put_profile(_profile())
        waiting = [p for p, pod in self.api.pods_by_name.items() if "nodeName" not in pod["spec"]]
        for pod in waiting:
            node = make_node(f"node-of-{pod}", created_s=time.time() - 99)
            self.api.nodes_by_name[f"node-of-{pod}"] = node
            for operator in self.operators:
                operator.store.saw_node(node)
            self.api.bind(pod, f"node-of-{pod}")
        for pod in waiting:  # all are seen to start before the first is ready: one plan for all
            self.say(pod)

    @property
    def plan(self) -> Plan | None:
        entry = self.board.plan()
        return entry.model if entry else None

    async def await_plan(self, revision: int) -> Plan:
        def is_there() -> bool:
            plan = self.plan
            return plan is not None and plan.revision >= revision

        await until(is_there, f"revision {revision}")
        plan = self.plan
        assert plan is not None
        return plan

    def form(self, step: int = 0) -> None:
        """The workers of the current plan train."""
        plan = self.plan
        assert plan is not None
        assert plan.layout is not None
        for worker, cell in plan.cells():
            layers = plan.layout.layers(cell.stage)
            self.say(
                worker.removesuffix("-0/0"),
                holding=Holding(
                    revision=plan.revision, first=layers.start, last=layers.stop, step=step
                ),
            )
        self.board.put_progress(Progress(revision=plan.revision, step=step, samples=8 * step))

    def lose(self, pod: str) -> None:
        """Its instance goes without a word."""
        self.api.nodes_by_name.pop(f"node-of-{pod}", None)
        self.api.remove_pod(pod)
        self._leases.pop(pod).revoke()

    async def train(self, step: int = 3, pods: int = 2) -> None:
        """From nothing to training."""
        await until(lambda: len(self.pods) == pods, "pods are asked for")
        self.run_pods()
        plan = await self.await_plan(1)
        self.form(step)
        await until(lambda: self.phase == "Training", f"revision {plan.revision} trains")


def _profile() -> Profile:
    layer = LayerProfile(
        name="x", param_bytes=100, state_bytes=300, activation_bytes=10, seconds=0.1
    )
    return Profile(
        layers=tuple(layer.model_copy(update={"name": f"layer{k}"}) for k in range(LAYERS)),
        num_micro_batches=8,
        micro_batch_samples=1,
        total_steps=TOTAL_STEPS,
        bandwidth_bytes_per_s=1e9,
    )


def on_site(
    endpoint: str,
    work: Callable[[KubeSite], Awaitable[None]],
    *,
    access: BoardAccess | None = None,
) -> KubeSite:
    """Run a test's work there."""

    async def run() -> KubeSite:
        async with KubeSite(endpoint, access) as site:
            await asyncio.wait_for(work(site), 90)
            return site

    return asyncio.run(run())
