"""One local run, from its start to its records."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from rich.console import Console

from parcae_agent.settings import AgentConfig
from parcae_api.board import JobBoard
from parcae_api.errors import InputError, ParcaeError
from parcae_api.etcd import EtcdClient
from parcae_api.events import AnyEvent, InstanceLost
from parcae_api.job_status import ConditionType
from parcae_api.membership import AgentState
from parcae_api.planning import Planner
from parcae_api.profile import Profile
from parcae_cli.etcd_server import EtcdServer
from parcae_cli.local.agents import AgentLauncher, warm_up
from parcae_cli.local.cloud import FakeCloud, script
from parcae_cli.local.cluster import Ended, LocalCluster, Loss
from parcae_cli.local.frame import Frame, NodeView
from parcae_cli.local.interrupts import Interrupts
from parcae_cli.local.options import LocalRunPlan, PlannerKind
from parcae_cli.local.recorder import Recorder
from parcae_cli.local.view import View, make_view
from parcae_operator.actions import Complete, Fail
from parcae_operator.loop import JobLoop
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.logged import LoggedPlanner
from parcae_optimizer.reactive import ReactivePlanner
from parcae_predictor import DEFAULT, predictor_of

_FRAME_SECONDS = 0.25
_FINISH_LIMIT_SECONDS = 60.0
_DEFAULT_NOTICE_SECONDS = 30.0
_WORKER_TIMEOUT_SECONDS = 5.0
_LEAST_FREE_BYTES = 1 << 20
_ETCD_AGAIN_SECONDS = 5.0
"""Between two attempts to start etcd again."""


@dataclass(frozen=True)
class Ending:
    """How training ended."""

    failure: Fail | None = None
    complete: Complete | None = None
    interrupted: bool = False
    trouble: Exception | None = None
    """The controller or the fake cloud could not go on. The records are written all the same."""
    profile: Profile | None = None
    """Of the model, with the costs of changes that were measured; None before it was loaded."""


class LocalRun:
    """Owns all parts of a run while it trains."""

    def __init__(self, plan: LocalRunPlan, console: Console, interrupts: Interrupts) -> None:
        self._plan = plan
        self.recorder = Recorder(plan.out / "events.jsonl")
        self.view: View = make_view(console, self.recorder.started_unix_s)
        self.interrupts = interrupts
        self.woken = threading.Event()
        """Set when the cluster has changed."""

    def train(self) -> Ending:
        """Start everything, train until the end, and end everything.

        Raises:
            InputError: etcd does not start.
        """
        plan, out = self._plan, self._plan.out
        with ExitStack() as stack:
            for line in _greeting(plan):
                self.view.say(line)
            warming = threading.Thread(target=warm_up, daemon=True)
            warming.start()
            server = stack.enter_context(EtcdServer(out / "etcd", out / "etcd.log"))
            client = stack.enter_context(EtcdClient([server.endpoint]))
            board = JobBoard(client, plan.job.metadata.namespace, plan.job.metadata.name)
            board.put_job(plan.job)
            while warming.is_alive():
                warming.join(_FRAME_SECONDS)
                if self.interrupts.count:
                    return Ending(interrupted=True)
            launcher = AgentLauncher(_agent_config(plan, server.endpoint), out / "agents.log")
            cluster = LocalCluster(launcher.launch, wake=self.woken.set, on_ended=self._ended)
            stack.callback(cluster.close)
            loop = JobLoop(
                plan.job,
                board,
                cluster,
                _planner(plan),
                report=self._report,
                interval_s=plan.interval_s,
                share_a_machine=True,
            )
            cloud = _make_cloud(plan, cluster)
            stack.callback(cloud.stop)
            ending = _Drive(self, loop, cluster, cloud, plan, server).run()
            for failed in loop.board_state.failures:
                self.recorder.report(failed)
            return ending

    def close(self) -> None:
        """Close the records and the view."""
        self.recorder.close()
        self.view.close()

    def _report(self, event: AnyEvent) -> None:
        self.recorder.report(event)
        self.view.event(event)

    def _ended(self, ended: Ended) -> None:
        self._report(
            InstanceLost(
                at_unix_s=ended.at_unix_s,
                incarnation=ended.pod,
                node=ended.node,
                noticed=ended.loss is Loss.NOTICED,
            )
        )


class _Drive:
    """The time between everything being started and everything being ended."""

    def __init__(
        self,
        run: LocalRun,
        loop: JobLoop,
        cluster: LocalCluster,
        cloud: FakeCloud,
        plan: LocalRunPlan,
        server: EtcdServer,
    ) -> None:
        self._run, self._loop, self._cluster = run, loop, cluster
        self._cloud, self._plan, self._server = cloud, plan, server
        self._end: Complete | Fail | None = None
        self._error: Exception | None = None
        self._finish_asked_s: float | None = None
        self._etcd_tried_s = -_ETCD_AGAIN_SECONDS

    def run(self) -> Ending:
        """Drive until the job has ended or can no longer be waited for."""
        thread = threading.Thread(target=self._run_loop, name="parcae-loop", daemon=True)
        thread.start()
        self._cloud.start()
        self._run.recorder.playing()
        try:
            while thread.is_alive() and not self._given_up() and self._disk_error() is None:
                if self._run.woken.wait(_FRAME_SECONDS):
                    self._run.woken.clear()
                    self._loop.wake()
                self._look()
        finally:
            disk_error = self._disk_error()
            self._loop.stop()
            thread.join()
        return Ending(
            # On a full disk everything fails, and the user's code is not to blame.
            failure=self._end if isinstance(self._end, Fail) and not disk_error else None,
            complete=self._end if isinstance(self._end, Complete) else None,
            interrupted=self._run.interrupts.count > 0,
            trouble=disk_error or self._error or self._cloud.error,
            profile=self._loop.profile,
        )

    def _disk_error(self) -> ParcaeError | None:
        """What to say when there is no room for records any more; training would only suffer."""
        out = self._plan.out
        disk = os.statvfs(out)
        if disk.f_bavail * disk.f_frsize >= _LEAST_FREE_BYTES:
            return None
        return ParcaeError(
            f"{out}: {os.strerror(errno.ENOSPC)}; free some, or name another folder with --out"
        )

    def _run_loop(self) -> None:
        try:
            self._end = self._loop.run()
        except Exception as error:
            self._error = error

    def _look(self) -> None:
        self._run.recorder.count(len(self._cluster.node_states()))
        self._run.view.show(self._frame())
        if self._finish_asked_s is None:
            why = self._why_finish()
            if why:
                self._finish_asked_s = time.monotonic()
                self._run.view.say(f"{why}: stopping at the next step's end")
                self._loop.finish(why)
        if not self._server.is_running:
            self._restart_etcd()

    def _restart_etcd(self) -> None:
        """Someone killed it. Training goes on without; its place is filled again."""
        if time.monotonic() - self._etcd_tried_s < _ETCD_AGAIN_SECONDS:
            return
        self._run.view.say("etcd is gone; starting it again on its data")
        try:
            self._server.restart()
        except InputError as error:
            self._etcd_tried_s = time.monotonic()
            self._run.view.say(f"{error}; training goes on without")

    def _why_finish(self) -> str:
        if self._run.interrupts.count:
            return "interrupted"
        if self._cloud.error is not None:
            return "the recording cannot be played on"
        return "the recording is over" if self._cloud.is_over.is_set() else ""

    def _given_up(self) -> bool:
        if self._run.interrupts.count > 1:
            return True
        asked_s = self._finish_asked_s
        return asked_s is not None and time.monotonic() - asked_s > _FINISH_LIMIT_SECONDS

    def _frame(self) -> Frame:
        plan, board, status = self._plan, self._loop.board_state, self._loop.status
        progress = board.progress
        agents = {agent.pod: agent for agent in board.agents.values()}
        nodes = []
        for name, notice, pod in self._cluster.node_states():
            agent = agents.get(pod or "")
            cell = None
            state = "gone" if pod is None and notice is not None else "booting"
            if agent is not None:
                state = _STATES[agent.state]
                cell = board.plan.cell_of(agent.workers[0].id) if board.plan else None
            nodes.append(NodeView(name, state, notice, cell))
        condition = status.condition(ConditionType.PROGRESSING)
        trace = plan.trace
        return Frame(
            title=f"parcae local: {plan.job.metadata.name}",
            trace_seconds=self._cloud.elapsed_s * plan.speedup if trace else None,
            trace_duration_seconds=trace.duration_s if trace else None,
            nodes=tuple(nodes),
            configuration=status.configuration,
            revision=status.revision,
            phase=condition.reason if condition else "Starting",
            why=condition.message if condition else "",
            step=progress.step if progress else 0,
            loss=progress.loss if progress else None,
            samples_per_second=progress.samples_per_second if progress else None,
        )


_STATES = {
    AgentState.STARTING: "starting",
    AgentState.STANDBY: "standby",
    AgentState.TRAINING: "training",
    AgentState.LEAVING: "leaving",
}


def _planner(plan: LocalRunPlan) -> Planner:
    if plan.planner is PlannerKind.REACTIVE:
        return LoggedPlanner(ReactivePlanner())
    return LoggedPlanner(LiveputPlanner(predictor_of(DEFAULT)))


def _greeting(plan: LocalRunPlan) -> Iterator[str]:
    """What is about to happen."""
    spec, trace = plan.job.spec, plan.trace
    text = f"{plan.job.metadata.name} on up to {spec.instances.max} instances"
    if trace is not None:
        text += f", through {trace.name} at {plan.speedup:g}x"
        text += f" in {trace.duration_s / plan.speedup:.0f} s"
    yield f"{text}; loading torch first, once for all workers"
    least = max(spec.instances.min, spec.pipeline.min_stages)
    if trace is not None and trace.peak() < least:
        yield (
            f"nothing will be trained: {least} instances are needed (instances.min, "
            f"pipeline.minStages), and the recording never has more than {trace.peak()}"
        )


def _agent_config(plan: LocalRunPlan, endpoint: str) -> AgentConfig:
    """What all agents have in common; the launcher adds pod and node."""
    notice_s = plan.trace.notice_s / plan.speedup if plan.trace else _DEFAULT_NOTICE_SECONDS
    return AgentConfig(
        endpoints=(endpoint,),
        namespace=plan.job.metadata.namespace,
        job=plan.job.metadata.name,
        spec=plan.job.spec,
        pod="",
        node="",
        node_uid="",
        address="127.0.0.1",
        grace_seconds=notice_s,
        worker_timeout_seconds=_WORKER_TIMEOUT_SECONDS,
        search_path=plan.search_path,
        ledger=plan.out / "ledger",
        checkpoints=plan.checkpoints,
        metrics_port=0 if plan.metrics else None,
        metrics_host="127.0.0.1",
    )


def _make_cloud(plan: LocalRunPlan, cluster: LocalCluster) -> FakeCloud:
    """The recording's player; without a recording, instances that come and stay."""
    if plan.trace is None:
        for index in range(plan.job.spec.instances.max):
            cluster.node_up(f"local-{index}")
        return FakeCloud([], float("inf"), cluster)
    cues = script(plan.trace, speedup=plan.speedup, unnoticed=plan.unnoticed, seed=plan.seed)
    return FakeCloud(cues, plan.trace.duration_s / plan.speedup, cluster)
