"""Real workers without a board: a test plays their supervisors and hands them plans."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from parcae_agent.entry import run_worker
from parcae_agent.ledger import Ledger, read_ledger
from parcae_agent.link import (
    Happened,
    Link,
    MeetingPlace,
    Message,
    PlanNews,
    Quit,
    Ready,
    State,
    UserFailed,
)
from parcae_agent.probe import Probe, no_probe
from parcae_agent.worker import WorkerConfig
from parcae_api.events import Failed
from parcae_api.job import JobSpec
from parcae_api.plan import Configuration, Layout, Plan, PlanReason

WAIT_SECONDS = 60.0


def split(total: int, parts: int) -> tuple[int, ...]:
    """As even as possible, the larger first."""
    quotient, rest = divmod(total, parts)
    return tuple(quotient + (i < rest) for i in range(parts))


def even_layout(data: int, pipeline: int, *, layers: int, micro_batches: int) -> Layout:
    sizes = split(layers, pipeline)
    boundaries = tuple(sum(sizes[:i]) for i in range(pipeline + 1))
    return Layout(
        configuration=Configuration(data=data, pipeline=pipeline),
        boundaries=boundaries,
        micro_batches=split(micro_batches, data),
    )


@dataclass
class Hand:
    """One worker as its test sees it."""

    name: str
    process: multiprocessing.process.BaseProcess
    link: Link
    state: State = field(default_factory=lambda: State(revision=None))
    ready: bool = False
    failure: Failed | None = None
    migrations: list[Happened] = field(default_factory=list)


def _enter(config: WorkerConfig, end: socket.socket) -> None:
    code = run_worker(config, end)
    os._exit(code)


class Crew:
    """Starts workers, hands out plans, awaits what they report."""

    def __init__(self, folder: Path, spec: JobSpec, search_path: str) -> None:
        self.folder, self.spec, self.search_path = folder, spec, search_path
        self.hands: dict[str, Hand] = {}
        self.revision = 0
        self._condition = threading.Condition()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["parcae_agent.preload"])

    def start(self, *names: str, probe: Probe = no_probe) -> None:
        for name in names:
            ours, theirs = socket.socketpair()
            config = WorkerConfig(
                worker=f"{name}/0",
                spec=self.spec,
                address="127.0.0.1",
                search_path=self.search_path,
                ledger=self.folder / "ledger",
                checkpoints=self.folder / "checkpoints",
                probe=probe,
            )
            process = self._context.Process(target=_enter, args=(config, theirs), name=name)
            process.start()
            theirs.close()
            hand = Hand(name, process, Link(ours))
            self.hands[name] = hand
            threading.Thread(target=self._listen, args=(hand,), daemon=True).start()
        for name in names:
            self.wait(lambda name=name: self.hands[name].ready, f"{name} ready")

    def plan(
        self,
        data: int,
        pipeline: int,
        workers: Sequence[str],
        *,
        reason: PlanReason = PlanReason.NOTICE,
        donors: Sequence[str] = (),
        layers: int = 6,
        micro_batches: int = 8,
        tell: Sequence[str] | None = None,
    ) -> int:
        self.revision += 1
        ids = [f"{w}/0" for w in workers]
        plan = Plan(
            revision=self.revision,
            reason=reason,
            why="a test",
            created_unix_s=0.0,
            layout=even_layout(data, pipeline, layers=layers, micro_batches=micro_batches),
            grid=tuple(tuple(ids[d * pipeline : (d + 1) * pipeline]) for d in range(data)),
            donors=tuple(f"{w}/0" for w in donors),
        )
        self._tell(plan, tell)
        return self.revision

    def pause(self, reason: PlanReason = PlanReason.SUSPEND) -> None:
        self.revision += 1
        self._tell(
            Plan(revision=self.revision, reason=reason, why="a test", created_unix_s=0.0), None
        )

    def kill(self, *names: str) -> None:
        for name in names:
            process = self.hands[name].process
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        for name in names:
            self.gone(name)

    def gone(self, name: str) -> None:
        self.hands[name].process.join(WAIT_SECONDS)
        assert self.hands[name].process.exitcode is not None, f"{name} lives on"

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._condition:
            if not self._condition.wait_for(condition, WAIT_SECONDS):
                states = {h.name: h.state for h in self.hands.values()}
                failures = [h.failure for h in self.hands.values() if h.failure]
                raise AssertionError(f"never happened: {what}; {states} {failures}")

    def wait_step(self, step: int) -> None:
        """Until somebody holds state of at least that many committed steps."""
        self.wait(lambda: self._step() >= step, f"step {step}")

    def wait_committed(self, step: int) -> None:
        """Until the ledger knows of a committed step of that number (from 0)."""
        self.wait(lambda: (self.progress or 0) > step, f"step {step} committed")

    progress: int = 0

    def wait_saved(self, layers: int = 6) -> int:
        """Until all layers are saved at one step; that step."""

        def steps() -> set[int]:
            held: dict[int, set[int]] = {}
            for hand in self.hands.values():
                saved = hand.state.saved
                if saved is not None:
                    held.setdefault(saved.step, set()).update(saved.layers)
            return {s for s, k in held.items() if len(k) == layers}

        self.wait(lambda: bool(steps()), "all layers saved")
        return max(steps())

    def ledger(self) -> Ledger:
        return read_ledger(self.folder / "ledger")

    def close(self) -> None:
        for hand in self.hands.values():
            hand.link.send(Quit())
        for hand in self.hands.values():
            hand.process.join(10)
            if hand.process.exitcode is None:
                hand.process.kill()
                hand.process.join(10)
            hand.link.close()

    def _step(self) -> int:
        return max((h.state.holding.step for h in self.hands.values() if h.state.holding), default=0)

    def _tell(self, plan: Plan, names: Sequence[str] | None) -> None:
        for hand in list(self.hands.values()):
            if names is None or hand.name in names:
                hand.link.send(PlanNews(plan=plan))

    def _listen(self, hand: Hand) -> None:
        for message in hand.link.messages():
            self._accept(hand, message)

    def _accept(self, hand: Hand, message: Message) -> None:
        with self._condition:
            match message:
                case Ready():
                    hand.ready = True
                case State():
                    saved = message.saved or hand.state.saved
                    hand.state = message.model_copy(update={"saved": saved})
                case MeetingPlace():
                    for other in self.hands.values():
                        if other is not hand:
                            other.link.send(message)
                case Happened():
                    hand.migrations.append(message)
                case UserFailed(failure=failure):
                    hand.failure = failure
                case _ if message.type == "progress":
                    self.progress = message.progress.step
            self._condition.notify_all()
