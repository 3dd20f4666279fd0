"""A worker: one training process, from plan to plan.

Its life is one loop: wait for a plan newer than the last; if it has a place in it, form the
epoch, train until the epoch ends, and wait again. State outlives epochs; nothing else does.
"""

from __future__ import annotations

import logging
import time

import torch

from parcae_agent.breaker import EpochGuard, make_breaker
from parcae_agent.data import Batches
from parcae_agent.forming import Formed, Former, host_store, join_store
from parcae_agent.groups import destroy_groups
from parcae_agent.ledger import CommitLine, EpochLine, JobLine, Journal
from parcae_agent.link import Link, MeetingPlace, Ready, State
from parcae_agent.mailbox import Mailbox
from parcae_agent.memory import Memory
from parcae_agent.metrics.meter import Meter
from parcae_agent.metrics.page import Page
from parcae_agent.reporter import Reporter
from parcae_agent.saver import Saver
from parcae_agent.settings import WorkerConfig
from parcae_agent.shapes import survey
from parcae_agent.step import StepContext, StepRunner
from parcae_agent.training import Training
from parcae_agent.user_code import find_failure, user_code
from parcae_agent.wire import Wire
from parcae_api.log_context import about
from parcae_api.plan import Plan

_log = logging.getLogger(__name__)
_TORN = (RuntimeError, OSError, ValueError)
"""What torch raises when a peer is lost."""


class Worker:
    """One training process."""

    def __init__(self, config: WorkerConfig, link: Link, training: Training) -> None:
        self._config = config
        self._link = link
        self._training = training
        self._device = torch.device(config.device)
        backend = "nccl" if self._device.type == "cuda" else "gloo"
        self._wire = Wire(direct=backend == "nccl")
        self._guard = EpochGuard(make_breaker(backend), self._wire)
        self._meter = Meter(Page.of(config.page))
        self._mailbox = Mailbox(link, self._guard, self._look_at_device)
        self._memory = Memory()
        spec = config.spec
        self._saver = Saver(
            config.checkpoints, spec.checkpoint.every_steps, len(training.layers), self._meter
        )
        batches = Batches(
            training.data,
            seed=spec.seed,
            micro_batch=training.micro_batch,
            num_micro_batches=training.num_micro_batches,
            collate=training.collate,
        )
        with user_code("the data set"):
            sample, _ = batches.load(0, 0)
        self._survey = survey(training, spec.seed, sample)
        self._journal = Journal(config.ledger, config.worker)
        self._journal.write(
            JobLine(
                num_layers=len(training.layers),
                num_micro_batches=training.num_micro_batches,
                micro_batch_samples=training.micro_batch,
            )
        )
        self._former = Former(
            config.worker,
            training,
            spec.seed,
            self._memory,
            device=self._device,
            backend=backend,
            checkpoints=config.checkpoints,
            wire=self._wire,
            probe=config.probe,
        )
        self._former.on_roll_forward = self._rolled_forward
        self._context = StepContext(
            training=training,
            survey=self._survey,
            batches=batches,
            memory=self._memory,
            journal=self._journal,
            reduction=spec.reduction,
            seed=spec.seed,
            device=self._device,
            wire=self._wire,
            probe=config.probe,
            is_over=self._mailbox.is_over,
        )
        self._broken_revision = 0
        self._last_epoch = 0

    def run(self) -> None:
        """Serve until told to quit.

        Raises:
            TrainingFailed: the user's code failed.
            InputError: what the user gave cannot work.
        """
        self._link.send(Ready(profile=self._survey.profile))
        revision = 0
        while (plan := self._mailbox.wait_for_plan(newer_than=revision)) is not None:
            revision = plan.revision
            with about(revision=revision):
                if self._config.worker in plan.members:
                    self._take_part(plan)
                elif plan.layout is None:
                    self._save(plan)
            self._tell(idle_revision=revision)

    def stop_listening(self) -> None:
        """The end is near, and its exit code known: a supervisor that leaves changes nothing."""
        self._mailbox.close()

    @property
    def step(self) -> int:
        """Committed steps so far."""
        return self._memory.applied

    def close(self) -> None:
        """End what outlives ``run``: background writes, the guard's thread."""
        self.stop_listening()
        self._saver.close()
        self._guard.close()
        self._journal.close()

    def _take_part(self, plan: Plan) -> None:
        """Form an epoch and train in it until it ends, one way or another."""
        runner: StepRunner | None = None
        self._guard.enter(plan.revision)
        self._mailbox.forming(plan.revision)
        try:
            begun_s = time.perf_counter()
            formed = self._form(plan)
            if formed is None:
                _log.info("a newer plan came before this one could form")
                return
            seconds = time.perf_counter() - begun_s
            self._count(formed, seconds)
            self._tell_of(formed, seconds)
            self._mailbox.formed()
            if formed.cell is None:
                return  # a donor: its state is out
            self._guard.seal()
            runner = StepRunner(self._context, formed)
            self._announce(formed)
            self._train(formed, runner)
        except Exception as error:
            # Peers blocked on this worker must see their operations fail, too.
            self._guard.shut_now()
            failure = find_failure(error)
            if failure is not None:
                raise failure from None
            if not isinstance(error, _TORN) and not self._guard.tripped:
                raise
            self._broken(plan, error)
        finally:
            self._mailbox.formed()
            self._leave()

    def _form(self, plan: Plan) -> Formed | None:
        """Meet and form; None when a newer plan came before the meeting."""
        if plan.members[0] == self._config.worker:
            store, place = host_store(self._config.address, plan.revision)
            self._link.send(MeetingPlace(rendezvous=place))
            self._former.prepare(plan)
            return self._former.form(plan, store)
        self._former.prepare(plan)
        found = self._mailbox.wait_for_place(plan.revision)
        if found is None:
            return None
        return self._former.form(plan, join_store(found, self._wire))

    def _announce(self, formed: Formed) -> None:
        """Tell the records and the board that the epoch trains from here."""
        plan, cell = formed.plan, formed.cell
        assert cell is not None
        assert plan.layout is not None
        layers = plan.layout.layers(cell.stage)
        self._journal.write(
            EpochLine(
                revision=plan.revision,
                resume=self._memory.applied,
                replica=cell.replica,
                stage=cell.stage,
                first_layer=layers.start,
                last_layer=layers.stop,
                configuration=str(plan.layout.configuration),
                at_unix_s=time.time(),
            )
        )
        self._last_epoch = plan.revision
        self._tell(revision=plan.revision)

    def _train(self, formed: Formed, runner: StepRunner) -> None:
        reporter = Reporter(self._link, self._survey, formed, self._saver.newest)
        reporter.formed(self._memory.applied)
        first_replica = formed.cell is not None and formed.cell.replica == 0
        samples = runner.num_micro_batches * self._training.micro_batch
        tokens = runner.num_micro_batches * self._survey.micro_batch_tokens
        memory = self._memory
        while memory.applied < self._training.steps:
            started = time.perf_counter()
            outcome = runner.run()
            seconds = time.perf_counter() - started
            self._meter.stepped(
                memory.applied,
                seconds=seconds,
                parts=runner.parts,
                samples=samples,
                tokens=tokens,
                loss=outcome.loss,
                norm=outcome.gradient_norm,
            )
            reporter.stepped(memory.applied, outcome, seconds)
            if first_replica:
                self._saver.after_step(memory)
            if outcome.leaves:
                with about(revision=self._mailbox.newest_revision):  # which is why
                    _log.info(
                        "leaves revision %d after step %d", formed.plan.revision, memory.applied
                    )
                return
        self._save(formed.plan)

    def _save(self, plan: Plan) -> None:
        """Write what this worker holds, for good: training pauses or has ended."""
        if self._memory.layers:
            self._saver.save_now(self._memory)
            if self._config.checkpoints is not None:
                _log.info("the state of step %d is saved", self._memory.applied)
            self._tell(saved=True)

    def _rolled_forward(self, step: int) -> None:
        self._journal.write(CommitLine(revision=self._last_epoch, step=step, at_unix_s=time.time()))

    def _broken(self, plan: Plan, error: Exception) -> None:
        if self._mailbox.newest_revision == plan.revision:
            _log.warning("the epoch broke: %s", str(error).split("\n")[0])
        self._broken_revision = plan.revision
        self._meter.broke()
        self._tell()

    def _count(self, formed: Formed, seconds: float) -> None:
        """Put what forming took, and what is held now, on the page."""
        memory = self._memory
        last_s = formed.agreement.last_commit_unix_s
        pause_s = None if formed.agreement.first or last_s is None else time.time() - last_s
        self._meter.moved(sent=formed.bytes_sent, received=formed.bytes_received)
        self._meter.formed(formed.plan.revision, formed.cell, seconds, pause_s)
        self._meter.holds(
            step=memory.applied,
            layers=len(memory.layers),
            state_bytes=sum(layer.nbytes for layer in memory.layers.values()),
        )

    def _tell_of(self, formed: Formed, seconds: float) -> None:
        cell, agreement = formed.cell, formed.agreement
        if agreement.rolled_back_from is not None:
            was, now = agreement.rolled_back_from, agreement.resume
            _log.warning("a layer has no holder left: back from step %d to step %d", was, now)
        moved = f"sent {formed.bytes_sent} bytes, received {formed.bytes_received}"
        if cell is None:
            _log.info(
                "formed in %.3f s without this worker, whose state is out: %s", seconds, moved
            )
            return
        assert formed.plan.layout is not None
        layers = formed.plan.layout.layers(cell.stage)
        _log.info(
            "formed in %.3f s: goes on from step %d as replica %d, stage %d, layers %d to %d; %s",
            seconds,
            self._memory.applied,
            cell.replica,
            cell.stage,
            layers.start,
            layers.stop - 1,
            moved,
        )

    def _look_at_device(self) -> None:
        """From the thread that answers the supervisor: what a GPU's memory holds."""
        if self._device.type == "cuda":
            self._meter.device(
                allocated=torch.cuda.memory_allocated(self._device),
                reserved=torch.cuda.memory_reserved(self._device),
            )

    def _leave(self) -> None:
        self._meter.left()
        self._guard.leave()
        destroy_groups()

    def _tell(
        self, *, revision: int | None = None, idle_revision: int = 0, saved: bool = False
    ) -> None:
        holding = self._memory.holding()
        self._link.send(
            State(
                revision=revision,
                idle_revision=idle_revision,
                broken_revision=self._broken_revision,
                holding=holding,
                saved=holding if saved else None,
            )
        )
