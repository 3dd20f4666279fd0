"""A job as its controller sees it, set up by hand; and workers that obey its plans.

The workers here do what real ones do, as far as the controller can tell: those of a plan form an
epoch when all of them live, agree on who holds what, go back to a checkpoint when a layer has no
holder left, train, leave at a pause and save. Nothing happens by itself: a test says when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from parcae_api.events import Failed
from parcae_api.history import History
from parcae_api.job import (
    Entrypoint,
    Instances,
    JobSpec,
    Metadata,
    ParcaeJob,
    Pipeline,
)
from parcae_api.job_status import ConditionType
from parcae_api.membership import AgentState, Holding, Membership, Notice, WorkerInfo
from parcae_api.plan import Configuration, Layout, Plan, PlanReason
from parcae_api.planning import Alternative, PlanAnswer, PlanRequest
from parcae_api.profile import LayerProfile, Profile
from parcae_api.progress import Progress
from parcae_operator.actions import Action, Complete, CreatePods, Fail, PublishPlan, SetStatus
from parcae_operator.controller import decide
from parcae_operator.observation import Observation, Pod, PodPhase
from parcae_optimizer.partition import even_split
from parcae_optimizer.reactive import ReactivePlanner

A = TypeVar("A", SetStatus, CreatePods, PublishPlan, Complete, Fail)
TOTAL_STEPS = 1000


def make_job(
    *, least: int = 1, most: int = 4, stages: tuple[int, int] = (1, 512), suspend: bool = False
) -> ParcaeJob:
    return ParcaeJob(
        api_version="parcae.dev/v1alpha1",
        kind="ParcaeJob",
        metadata=Metadata(name="job"),
        spec=JobSpec(
            instances=Instances(min=least, max=most),
            entrypoint=Entrypoint(function="train:gpt"),
            pipeline=Pipeline(min_stages=stages[0], max_stages=stages[1]),
            suspend=suspend,
        ),
    )


def make_profile(layers: int) -> Profile:
    return Profile(
        layers=tuple(
            LayerProfile(
                name=f"layer{k}", param_bytes=100, state_bytes=300, activation_bytes=10, seconds=0.1
            )
            for k in range(layers)
        ),
        num_micro_batches=8,
        micro_batch_samples=4,
        total_steps=TOTAL_STEPS,
        bandwidth_bytes_per_s=1e9,
    )


def make_layout(data: int, pipeline: int, layers: int) -> Layout:
    sizes = even_split(layers, pipeline)
    return Layout(
        configuration=Configuration(data=data, pipeline=pipeline),
        boundaries=tuple(sum(sizes[:k]) for k in range(pipeline + 1)),
        micro_batches=even_split(8, data),
    )


@dataclass
class Hand:
    """One pod with its agent and worker. ``held`` is what it really has, the rest what it said."""

    name: str
    phase: PodPhase = PodPhase.RUNNING
    on_board: bool = True
    ready: bool = True
    notice: Notice | None = None
    memory: int | None = None
    held: Holding | None = None
    said: Holding | None = None
    saved: Holding | None = None
    idle: int = 0
    broken: int = 0
    in_epoch: int | None = None

    @property
    def id(self) -> str:
        return f"{self.name}/0"

    @property
    def node(self) -> str:
        return "" if self.phase is PodPhase.PENDING else f"node-of-{self.name}"

    @property
    def lives(self) -> bool:
        return self.phase is PodPhase.RUNNING and self.on_board and self.ready

    def state(self) -> AgentState:
        if not self.ready:
            return AgentState.STARTING
        if self.notice is not None:
            return AgentState.LEAVING
        return AgentState.STANDBY if self.in_epoch is None else AgentState.TRAINING

    def membership(self) -> Membership:
        worker = WorkerInfo(
            id=self.id,
            memory_bytes=self.memory,
            ready=self.ready,
            revision=self.in_epoch,
            idle_revision=self.idle,
            broken_revision=self.broken,
            holding=self.said,
            saved=self.saved,
        )
        return Membership(
            incarnation=self.name,
            pod=self.name,
            node=f"node-of-{self.name}",
            node_uid=f"node-of-{self.name}",
            address="127.0.0.1",
            state=self.state(),
            workers=(worker,),
        )


@dataclass
class World:
    """Everything that is observed, and time."""

    least: int = 1
    most: int = 4
    layers: int = 6
    stages: tuple[int, int] = (1, 512)
    suspend: bool = False
    finish: str = ""
    now: float = 1000.0
    has_profile: bool = True
    plan: Plan | None = None
    progress: Progress | None = None
    failures: tuple[Failed, ...] = ()
    hands: dict[str, Hand] = field(default_factory=dict)
    plans: dict[int, Plan] = field(default_factory=dict)
    checkpoint: int = 0
    """The newest step of which every layer was written."""
    rollbacks: list[int] = field(default_factory=list)
    """Revisions that went back to a checkpoint."""
    history: History | None = None
    interval_ended: bool = False
    _broken_since: float | None = None
    _written: dict[int, set[int]] = field(default_factory=dict)

    # Setting up.

    def ready(self, *names: str, memory: int | None = None) -> World:
        """Agents whose worker is ready."""
        for name in names:
            self.hands[name] = Hand(name, memory=memory)
        return self

    def starting(self, *names: str, on_board: bool = True) -> World:
        """Pods that run and whose worker is not ready."""
        for name in names:
            self.hands[name] = Hand(name, ready=False, on_board=on_board)
        return self

    def pending(self, *names: str) -> World:
        """Pods without an instance."""
        for name in names:
            self.hands[name] = Hand(name, PodPhase.PENDING, on_board=False, ready=False)
        return self

    def training(self, data: int, pipeline: int, *names: str, spare: Sequence[str] = ()) -> World:
        """These train in a formed first revision."""
        self.ready(*names, *spare)
        grid = tuple(names[d * pipeline : (d + 1) * pipeline] for d in range(data))
        self._publish(
            Plan(
                revision=1,
                reason=PlanReason.INITIAL,
                why="a test",
                created_unix_s=self.now,
                layout=make_layout(data, pipeline, self.layers),
                grid=tuple(tuple(f"{name}/0" for name in row) for row in grid),
            )
        )
        self.obey()
        assert self.is_formed
        return self.train(10)

    def notice(self, *names: str) -> World:
        """Their instances will be gone in two minutes."""
        for name in names:
            self.hands[name].notice = Notice(deadline_unix_s=self.now + 120, source="test")
        return self

    def lose(self, *names: str) -> World:
        """Pod and agent are gone."""
        for name in names:
            del self.hands[name]
        return self

    def break_(self, *names: str) -> World:
        """The current revision breaks under them; they say so."""
        assert self.plan is not None
        for name in names:
            self.hands[name].broken = self.plan.revision
            self.hands[name].in_epoch = None
            self.hands[name].said = self.hands[name].held
        if self._broken_since is None:
            self._broken_since = self.now
        return self

    def wait(self, seconds: float) -> World:
        self.now += seconds
        return self

    def fail(self, message: str, at: float = 0.0, trace: str = "") -> World:
        failed = Failed(at_unix_s=at, worker="a/0", step=3, message=message, traceback=trace)
        self.failures = (*self.failures, failed)
        return self

    # What workers do.

    def obey(self) -> World:
        """The living do what the current plan says, as far as they can."""
        plan = self.plan
        assert plan is not None
        members = [self._hand(member) for member in plan.members]
        if plan.layout is None:
            for hand in self._living():
                self._leave(hand)
                self._save(hand)
                hand.idle = plan.revision
        elif all(hand is not None and hand.broken < plan.revision for hand in members):
            self._form(plan)
            for hand in self._living():
                if hand.id not in plan.workers:
                    hand.idle = plan.revision
        else:  # one is gone or has broken off: nobody gets any further
            self.break_(*(hand.name for hand in members if hand is not None))
        return self

    def obey_half(self, agreed: Sequence[str]) -> World:
        """The revision breaks after some have agreed on it, and before any state has moved."""
        plan = self.plan
        assert plan is not None
        members = [self._hand(member) for member in plan.members]
        hands = [hand for hand in members if hand is not None and hand.broken < plan.revision]
        if plan.layout is not None and not self.is_formed and len(hands) == len(plan.members):
            valid = [hand.name for hand in self.valid_holders(hands)]
            for hand in hands:
                if hand.name in agreed and hand.held is not None:
                    now = hand.held.model_copy(update={"revision": plan.revision})
                    hand.held = now if hand.name in valid else None
            self.break_(*(hand.name for hand in hands))
        return self

    def quit(self) -> World:
        """Those with a notice go when nobody needs them: what supervisors do."""
        plan = self.plan
        for hand in list(self.hands.values()):
            if hand.notice is None or (plan and plan.reason is PlanReason.FINISH):
                continue
            if plan is None or (hand.idle >= plan.revision and hand.id not in plan.workers):
                self.lose(hand.name)
        return self

    def train(self, steps: int) -> World:
        """Some steps of the current epoch are committed."""
        if self.is_formed and self.progress is not None and self.plan is not None:
            members = [self._hand(worker) for worker in self.plan.workers]
            if all(hand is not None and hand.in_epoch == self.plan.revision for hand in members):
                step = min(TOTAL_STEPS, self.progress.step + steps)
                self.progress = self.progress.model_copy(update={"step": step})
                for hand in members:
                    assert hand is not None
                    assert hand.held is not None
                    hand.held = hand.held.model_copy(update={"step": step})
                    if step == TOTAL_STEPS:
                        self._save(hand)
        return self

    def _form(self, plan: Plan) -> None:
        hands = [self._hand(member) for member in plan.members]
        valid = self.valid_holders([hand for hand in hands if hand is not None])
        held = {k for hand in valid if hand.held for k in hand.held.layers}
        step = max((hand.held.step for hand in valid if hand.held), default=0)
        if len(held) < self.layers:
            if self.progress is not None:
                self.rollbacks.append(plan.revision)
            step = self.checkpoint
        assert plan.layout is not None
        for hand in hands:
            assert hand is not None
            cell = plan.cell_of(hand.id)
            self._leave(hand)
            if cell is not None:
                layers = plan.layout.layers(cell.stage)
                hand.held = Holding(
                    revision=plan.revision, first=layers.start, last=layers.stop, step=step
                )
                hand.in_epoch = plan.revision
            elif hand.held is not None:  # a donor agreed, and keeps what it had
                hand.held = hand.held.model_copy(update={"revision": plan.revision})
            hand.said = hand.held
        self.progress = Progress(revision=plan.revision, step=step, samples=0)

    def valid_holders(self, hands: Sequence[Hand]) -> list[Hand]:
        """Whose state is the newest, by the workers' own agreement among these."""
        newest = max((h.held.revision for h in hands if h.held), default=0)
        members = self.plans[newest].members if newest else ()
        fresh = [h for h in hands if h.held and h.id in members]
        reached = max((h.held.step for h in fresh if h.held), default=0)
        return [h for h in fresh if h.held and h.held.step == reached]

    def _leave(self, hand: Hand) -> None:
        hand.in_epoch = None
        hand.said = hand.held

    def _save(self, hand: Hand) -> None:
        if hand.held is not None:
            hand.said = hand.saved = hand.held
            written = self._written.setdefault(hand.held.step, set())
            written.update(hand.held.layers)
            if len(written) == self.layers:
                self.checkpoint = max(self.checkpoint, hand.held.step)

    def _living(self) -> list[Hand]:
        return [hand for hand in self.hands.values() if hand.lives]

    def _hand(self, worker: str) -> Hand | None:
        hand = self.hands.get(worker.removesuffix("/0"))
        return hand if hand is not None and hand.lives else None

    # What the controller does.

    @property
    def is_formed(self) -> bool:
        formed = self.progress.revision if self.progress else 0
        return (
            self.plan is not None
            and self.plan.layout is not None
            and (formed == self.plan.revision)
        )

    def observe(self) -> Observation:
        job = make_job(least=self.least, most=self.most, stages=self.stages, suspend=self.suspend)
        hands = self.hands.values()
        return Observation(
            now_unix_s=self.now,
            started_unix_s=1000.0,
            job=job,
            pods=tuple(Pod(h.name, h.phase, h.node, h.notice) for h in hands),
            agents={h.name: h.membership() for h in hands if h.on_board},
            plan=self.plan,
            profile=make_profile(self.layers) if self.has_profile else None,
            progress=self.progress,
            failures=self.failures,
            finish=self.finish,
            broken_since_unix_s=self._broken_since,
            history=self.history,
            interval_ended=self.interval_ended,
        )

    def decide(self) -> list[Action]:
        return decide(self.observe(), ReactivePlanner())

    def next_plan(self) -> Plan | None:
        """The plan that the controller would publish now."""
        publish = self._find(PublishPlan)
        return publish.plan if publish else None

    def publish(self) -> Plan:
        """Have it published."""
        plan = self.next_plan()
        assert plan is not None, "nothing is published"
        self._publish(plan)
        return plan

    def end(self) -> Complete | Fail | None:
        return self._find(Complete) or self._find(Fail)

    def pods_wanted(self) -> int:
        create = self._find(CreatePods)
        return create.count if create else 0

    def status(self) -> tuple[str, str]:
        """Reason and message of the condition Progressing."""
        found = self._find(SetStatus)
        assert found is not None
        condition = found.status.condition(ConditionType.PROGRESSING)
        assert condition is not None
        return condition.reason, condition.message

    def _find(self, kind: type[A]) -> A | None:
        return next((action for action in self.decide() if isinstance(action, kind)), None)

    def _publish(self, plan: Plan) -> None:
        self.plan = plan
        self.plans[plan.revision] = plan
        self._broken_since = None


class ToldPlanner:
    """A planner that is told what each number of workers trains, and what a change costs."""

    def __init__(self, samples_per_second: list[float], pause_s: float) -> None:
        self.speeds, self.pause_s = samples_per_second, pause_s
        self.keeps = False
        """It finds today's layout the best."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        count = min(request.num_workers, len(self.speeds) - 1)
        return PlanAnswer(
            layout=request.current if self.keeps else make_layout(count, 1, 6),
            samples_per_second=self.speeds[count],
            pause_seconds=self.pause_s,
            alternatives=tuple(
                Alternative(
                    configuration=f"{data}x1",
                    samples_per_second=speed,
                    liveput_samples_per_second=speed,
                    pause_seconds=self.pause_s,
                )
                for data, speed in enumerate(self.speeds)
            ),
            why="a test",
        )


def grid_of(plan: Plan) -> list[list[str]]:
    """The grid by pod names."""
    return [[worker.removesuffix("/0") for worker in row] for row in plan.grid]


def donors_of(plan: Plan) -> list[str]:
    return [worker.removesuffix("/0") for worker in plan.donors]
