"""Real workers without a board: a test plays their supervisors and hands them plans."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TypeVar

from parcae_agent.entry import run_worker
from parcae_agent.ledger import Ledger, read_ledger
from parcae_agent.link import (
    Advanced,
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
from parcae_agent.settings import WorkerConfig
from parcae_api.events import Failed, Migration, RolledBack
from parcae_api.job import JobSpec
from parcae_api.plan import Configuration, Layout, Plan, PlanReason

WAIT_SECONDS = 60.0

E = TypeVar("E", Migration, RolledBack)


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


def await_true(condition: Callable[[], bool], what: object) -> None:
    """For what nobody reports: files, and the kernel's view of a process."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.002)


@dataclass
class Hand:
    """One worker as its test sees it."""

    name: str
    process: BaseProcess
    link: Link
    state: State = field(default_factory=lambda: State(revision=None))
    ready: bool = False
    failures: list[Failed] = field(default_factory=list)
    events: list[Migration | RolledBack] = field(default_factory=list)
    reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def is_stopped(self) -> bool:
        """Whether the kernel has it stopped."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False  # it has gone
        return stat.rpartition(")")[2].split()[0] == "T"


def _enter(config: WorkerConfig, end: socket.socket) -> None:
    code = run_worker(config, end)
    os._exit(code)


class Crew:
    """Starts workers, hands out plans, awaits what they report."""

    def __init__(
        self,
        folder: Path,
        spec: JobSpec,
        search_path: str,
        *,
        layers: int = 6,
        micro_batches: int = 8,
    ) -> None:
        """``layers`` and ``micro_batches`` are those of the training that ``spec`` names."""
        self.folder, self.spec, self.search_path = folder, spec, search_path
        self.checkpoints = folder / "checkpoints"
        self.layers, self.micro_batches = layers, micro_batches
        self.hands: dict[str, Hand] = {}
        self.revision = 0
        self.first: dict[int, Hand] = {}
        """The grid's first worker by revision."""
        self.progress = 0
        """Committed steps, as the grid's first worker last reported."""
        self._reported: dict[int, int] = {}
        self._condition = threading.Condition()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["parcae_agent.preload"])

    # What a supervisor does.

    def start(
        self, *names: str, probe: Probe = no_probe, probes: Mapping[str, Probe] | None = None
    ) -> None:
        """Start workers and wait until they are ready; ``probes`` by name, the others ``probe``."""
        for name in names:
            self.launch(name, (probes or {}).get(name, probe))
        for name in names:
            self.wait(lambda name=name: self.hands[name].ready, f"{name} is ready")

    def launch(self, name: str, probe: Probe = no_probe, *, device: str = "cpu") -> None:
        """Start one worker."""
        ours, theirs = socket.socketpair()
        config = WorkerConfig(
            worker=f"{name}/0",
            spec=self.spec,
            address="127.0.0.1",
            search_path=self.search_path,
            ledger=self.folder / "ledger",
            checkpoints=self.checkpoints,
            device=device,
            probe=probe,
        )
        process = self._context.Process(target=_enter, args=(config, theirs), name=name)
        process.start()
        theirs.close()
        hand = Hand(name, process, Link(ours))
        self.hands[name] = hand
        hand.reader = threading.Thread(target=self._listen, args=(hand,), daemon=True)
        hand.reader.start()

    def plan(
        self,
        data: int,
        pipeline: int,
        workers: Sequence[str],
        *,
        reason: PlanReason = PlanReason.NOTICE,
        donors: Sequence[str] = (),
        micro_batches: int | None = None,
        tell: Sequence[str] | None = None,
    ) -> int:
        """Publish the next plan: to all, or only to those in ``tell``."""
        self.revision += 1
        self.first[self.revision] = self.hands[workers[0]]
        ids = [f"{w}/0" for w in workers]
        layout = even_layout(
            data,
            pipeline,
            layers=self.layers,
            micro_batches=micro_batches or self.micro_batches,
        )
        plan = Plan(
            revision=self.revision,
            reason=reason,
            why="a test",
            created_unix_s=0.0,
            layout=layout,
            grid=tuple(tuple(ids[d * pipeline : (d + 1) * pipeline]) for d in range(data)),
            donors=tuple(f"{w}/0" for w in donors),
        )
        self.tell(plan, tell)
        return self.revision

    def pause(self, reason: PlanReason = PlanReason.SUSPEND) -> int:
        """Publish a plan without a layout."""
        self.revision += 1
        self.tell(
            Plan(revision=self.revision, reason=reason, why="a test", created_unix_s=0.0), None
        )
        return self.revision

    def tell(self, plan: Plan, names: Sequence[str] | None) -> None:
        for hand in list(self.hands.values()):
            if names is None or hand.name in names:
                hand.link.send(PlanNews(plan=plan))

    # What happens to instances.

    def kill(self, *names: str) -> None:
        """SIGKILL some at once."""
        for name in names:
            self.hands[name].process.kill()
        for name in names:
            self.gone(name)

    def gone(self, name: str) -> int:
        """Wait until a worker's process has ended; its exit code."""
        process = self.hands[name].process
        process.join(WAIT_SECONDS)
        assert process.exitcode is not None, f"{name} lives on; {self}"
        return process.exitcode

    def stop(self, name: str) -> None:
        """SIGSTOP it, as a host that is lost silently."""
        os.kill(self.hands[name].pid, signal.SIGSTOP)
        self.stopped(name)

    def stopped(self, name: str) -> None:
        """Wait until a worker has been stopped."""
        await_true(self.hands[name].is_stopped, f"{name} is stopped; {self}")

    def wake(self, name: str) -> None:
        """SIGCONT it."""
        os.kill(self.hands[name].pid, signal.SIGCONT)

    def orphan(self, name: str) -> None:
        """Close its link, as the death of its supervisor does."""
        self.hands[name].link.close()

    def quit(self, *names: str) -> None:
        """Tell some to end."""
        for name in names:
            self.hands[name].link.send(Quit())

    # What a test awaits.

    def await_file(self, path: Path) -> None:
        """Until a fault has touched it."""
        await_true(path.exists, f"{path.name} is there; {self}")

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._condition:
            happened = self._condition.wait_for(condition, WAIT_SECONDS)
        assert happened, f"never happened: {what}; {self}"

    def wait_committed(self, step: int) -> None:
        """Until the newest plan's epoch has reported more than ``step`` committed steps."""
        self.wait(lambda: self._reported.get(self.revision, -1) > step, f"step {step} committed")

    def wait_one_more(self) -> None:
        """Until the newest plan's epoch has committed a step more than it has reported so far."""
        self.wait(lambda: self.revision in self._reported, f"revision {self.revision} formed")
        self.wait_committed(self._reported[self.revision])

    def wait_formed(self, revision: int, *names: str) -> None:
        """Until those workers train in a revision."""
        for name in names:
            self.wait(
                lambda name=name: self.hands[name].state.revision == revision,
                f"{name} trains in revision {revision}",
            )

    def wait_first(self, revision: int) -> None:
        """Until a revision's epoch has formed and the plan's first worker says so."""
        first = self.first[revision]
        self.wait(lambda: first.state.revision == revision, f"revision {revision} formed")

    def wait_idle(self, revision: int, *names: str) -> None:
        """Until those workers have nothing more to do for a revision."""
        for name in names:
            self.wait(
                lambda name=name: self.hands[name].state.idle_revision >= revision,
                f"{name} is idle in revision {revision}",
            )

    def wait_broken(self, revision: int, *names: str) -> None:
        """Until those workers say that a revision broke under them."""
        for name in names:
            self.wait(
                lambda name=name: self.hands[name].state.broken_revision >= revision,
                f"revision {revision} is broken for {name}",
            )

    def wait_saved(self, step: int | None = None) -> int:
        """Until all layers are saved at one step (that step, if given); the step."""

        def steps() -> set[int]:
            held: dict[int, set[int]] = {}
            for hand in self.hands.values():
                saved = hand.state.saved
                if saved is not None:
                    held.setdefault(saved.step, set()).update(saved.layers)
            return {s for s, k in held.items() if len(k) == self.layers}

        def done() -> bool:
            return bool(steps()) if step is None else step in steps()

        self.wait(done, f"all layers saved at step {step or 'any'}")
        return max(steps())

    def wait_failed(self) -> Failed:
        """Until a worker says that the user's code failed; what the first one said."""
        self.wait(lambda: bool(self.failures), "the user's code failed")
        return self.failures[0]

    # What it knows.

    def reported(self, revision: int) -> int:
        """Committed steps as a revision's epoch last reported them; -1 before it has formed."""
        return self._reported.get(revision, -1)

    @property
    def alive(self) -> list[str]:
        return [name for name, hand in self.hands.items() if hand.process.is_alive()]

    @property
    def failures(self) -> list[Failed]:
        return [failure for hand in self.hands.values() for failure in hand.failures]

    @property
    def migrations(self) -> list[Migration]:
        return self._events(Migration)

    @property
    def rollbacks(self) -> list[RolledBack]:
        return self._events(RolledBack)

    def migration(self, revision: int) -> Migration:
        """What forming a revision cost."""
        self.wait(
            lambda: any(m.revision == revision for m in self.migrations),
            f"revision {revision} is reported as formed",
        )
        return next(m for m in self.migrations if m.revision == revision)

    def ledger(self) -> Ledger:
        return read_ledger(self.folder / "ledger")

    def close(self) -> list[str]:
        """Tell all to quit and wait for it; who would not, and had to be killed."""
        stubborn = []
        for hand in self.hands.values():
            if hand.process.is_alive() and hand.is_stopped():
                self.wake(hand.name)
            hand.link.send(Quit())
        for hand in self.hands.values():
            hand.process.join(10)
            if hand.process.exitcode is None:
                stubborn.append(hand.name)
                hand.process.kill()
                hand.process.join()
            hand.link.close()
            if hand.reader is not None:
                hand.reader.join()
            hand.process.close()
        return stubborn

    def __str__(self) -> str:
        lines = [f"revision {self.revision}, progress {self.progress}"]
        for hand in self.hands.values():
            lines.append(f"{hand.name}: exit code {hand.process.exitcode}, {hand.state!r}")
            lines += [f"  {failure.message}" for failure in hand.failures]
        lines += [f"{e.type} {e.revision}" for h in self.hands.values() for e in h.events]
        return "\n".join(lines)

    def _events(self, kind: type[E]) -> list[E]:
        return [e for hand in self.hands.values() for e in hand.events if isinstance(e, kind)]

    def _listen(self, hand: Hand) -> None:
        for message in hand.link.messages():
            with self._condition:
                self._accept(hand, message)
                self._condition.notify_all()

    def _accept(self, hand: Hand, message: Message) -> None:
        match message:
            case Ready():
                hand.ready = True
            case State():
                saved = message.saved or hand.state.saved
                hand.state = message.model_copy(update={"saved": saved})
            case MeetingPlace():
                for other in list(self.hands.values()):
                    if other is not hand:
                        other.link.send(message)
            case Happened(event=event):
                hand.events.append(event)
            case UserFailed(failure=failure):
                hand.failures.append(failure)
            case Advanced(progress=progress):
                self.progress = progress.step
                self._reported[progress.revision] = progress.step


MakeCrew = Callable[..., Crew]
"""A fixture: the training function's name in ``models``, its arguments as keywords."""
