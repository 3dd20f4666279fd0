"""One step of one epoch: run the micro-batches, reduce, vote, commit.

Up to the vote nothing of the worker's state changes; after it, all workers apply or, if their
vote failed, learn at the next meeting whether anyone did.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.schedules import PipelineScheduleSingle

from parcae_agent.data import Batches
from parcae_agent.forming import Formed
from parcae_agent.gradients import StageGradients
from parcae_agent.ledger import CommitLine, Journal, ReduceLine
from parcae_agent.memory import Memory, Pending
from parcae_agent.metrics.meter import StepParts
from parcae_agent.probe import Probe
from parcae_agent.randomness import key
from parcae_agent.reduction import make_reducer
from parcae_agent.shapes import Boundary, Survey
from parcae_agent.stage import LayerRun, ParcaeStage
from parcae_agent.ties import TiedGradients, counted_once, tie_groups
from parcae_agent.training import Training
from parcae_agent.user_code import user_code
from parcae_agent.vote import Ballot, Outcome
from parcae_agent.wire import Wire
from parcae_api.errors import InputError, TrainingFailed
from parcae_api.job import Reduction


@dataclass(frozen=True)
class StepContext:
    """What every epoch of a worker shares."""

    training: Training
    survey: Survey
    batches: Batches
    memory: Memory
    journal: Journal
    reduction: Reduction
    seed: int
    device: torch.device
    wire: Wire
    probe: Probe
    is_over: Callable[[int], bool]
    """Whether this worker has been told to leave the epoch of a revision."""


class StepRunner:
    """Runs steps in one formed epoch; built anew for each, since schedules are not reusable."""

    def __init__(self, context: StepContext, formed: Formed) -> None:
        assert formed.cell is not None
        assert formed.groups is not None
        assert formed.plan.layout is not None
        self._context = context
        self._groups = formed.groups
        self._revision = formed.plan.revision
        layout, cell = formed.plan.layout, formed.cell
        self._num_replicas = layout.configuration.data
        self._first_replica = cell.replica == 0
        self._micro_batches = layout.micro_batch_range(cell.replica)
        self._layers = [context.memory.layers[k] for k in layout.layers(cell.stage)]
        self._gradients = StageGradients(self._layers, context.reduction)
        self._stage = self._build_stage(formed)
        self._schedule = _schedule(self._stage, len(self._micro_batches), self._loss)
        self._reducer = make_reducer(
            context.reduction,
            micro_batches=[layout.micro_batch_range(d) for d in range(layout.configuration.data)],
            replica=cell.replica,
            numel=self._gradients.numel,
            dtype=self._gradients.dtype,
            device=context.device,
            group=formed.groups.replicas,
            wire=context.wire,
        )
        ties = tie_groups(context.training)
        self._ties = TiedGradients(
            ties, layout, cell.stage, context.memory.layers, formed.groups.pipeline, context.wire
        )
        self._counted = {layer.index: counted_once(ties, layer) for layer in self._layers}
        self.parts = StepParts()
        """Of the newest step."""
        self._ballot = Ballot(
            context.training.num_micro_batches, len(context.training.layers), context.device
        )

    def _build_stage(self, formed: Formed) -> ParcaeStage:
        context = self._context
        assert formed.plan.layout is not None
        assert formed.cell is not None
        layout, stage = formed.plan.layout, formed.cell.stage
        indices = layout.layers(stage)
        names = [context.training.layers[k].name for k in indices]
        boundaries = context.survey.boundaries[indices.start : indices.stop + 1]
        self._run = LayerRun(self._layers, names, boundaries, key("forward", context.seed))
        return ParcaeStage(
            self._run,
            self._gradients,
            self._micro_batches,
            stage=stage,
            num_stages=layout.configuration.pipeline,
            boundaries=boundaries,
            device=context.device,
            group=self._groups.pipeline,
            wire=context.wire,
            probe=context.probe,
        )

    @property
    def num_micro_batches(self) -> int:
        """That pass through this worker in a step."""
        return len(self._micro_batches)

    def run(self) -> Outcome:
        """Run and commit the next step.

        Raises:
            RuntimeError: a worker died or the epoch was broken; the step is not committed here.
            TrainingFailed: the user's code raised, or the loss or gradient is not finite.
        """
        memory, probe = self._context.memory, self._context.probe
        step = memory.applied
        probe("step", step)
        memory.attempting = True
        self._ballot.clear()
        begun_s = time.perf_counter()
        losses = self._forward_backward(step)
        scheduled_s = time.perf_counter()
        probe("reduce", step)
        self._context.journal.write(
            ReduceLine(
                revision=self._revision,
                step=step,
                micro_batches=tuple(self._gradients.micro_batches),
            )
        )
        reducing_s = time.perf_counter()
        grads = self._reduce()
        reduced_s = time.perf_counter()
        memory.pending = Pending(step, grads)
        probe("reduced", step)
        outcome = self._vote(losses, grads)
        voted_s = time.perf_counter()
        probe("voted", step)
        self._refuse_non_finite(step, outcome)
        self._commit(step, outcome, grads)
        parts, compute_s = self.parts, sum(self._run.seconds) + self._stage.backward_seconds
        parts.compute = compute_s
        parts.pipeline = max(0.0, scheduled_s - begun_s - parts.data - compute_s)
        parts.reduce = reduced_s - reducing_s
        parts.vote = voted_s - reduced_s
        parts.apply = time.perf_counter() - voted_s
        probe("applied", step)
        return outcome

    def _forward_backward(self, step: int) -> list[Tensor]:
        """Run the schedule; the losses of this pipeline's micro-batches, on its last stage."""
        self._gradients.reset()
        self._run.reset_timers()
        self._stage.step = step
        self._stage.backward_seconds = 0.0
        stage = self._stage
        inputs = targets = None
        begun_s = time.perf_counter()
        if stage.is_first or stage.is_last:
            loaded = [self._load(step, m) for m in self._micro_batches]
            device = self._context.device
            if stage.is_first:
                inputs = [(x.to(device),) for x, _ in loaded]
            if stage.is_last:
                targets = [y.to(device) for _, y in loaded]
        self.parts.data = time.perf_counter() - begun_s
        losses: list[Tensor] = []
        self._schedule.step(
            arg_mbs=inputs if inputs is not None else [()] * len(self._micro_batches),
            target_mbs=targets,
            losses=losses if stage.is_last else None,
            return_outputs=False,
        )
        return losses

    def _load(self, step: int, micro_batch: int) -> tuple[Tensor, Tensor]:
        with user_code("the data set"):
            inputs, targets = self._context.batches.load(step, micro_batch)
        expected = self._context.survey.boundaries[0]
        if Boundary.of(inputs) != expected:
            raise InputError(
                f"Training.data: the input of step {step} is {Boundary.of(inputs)}, but "
                f"{expected} at first; let all micro-batches have one shape"
            )
        return inputs, targets

    def _loss(self, output: Tensor, target: Tensor) -> Tensor:
        with user_code("the loss"):
            loss = self._context.training.loss(output, target)
        if not isinstance(loss, Tensor) or loss.ndim:
            got = f"shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise InputError(
                f"Training.loss: returned {got}; return the mean over the micro-batch's samples, "
                "a tensor without axes"
            )
        return loss

    def _reduce(self) -> dict[int, Tensor]:
        """The mean gradient over the global batch, by layer."""
        flat = self._reducer.reduce(self._gradients)
        grads, start = {}, 0
        for layer in self._layers:
            grads[layer.index] = flat[start : start + layer.numel]
            start += layer.numel
        self._ties.sum(grads)
        return grads

    def _vote(self, losses: list[Tensor], grads: dict[int, Tensor]) -> Outcome:
        ballot = self._ballot
        if losses:
            values = torch.stack([loss.detach() for loss in losses]).double().cpu()
            ballot.put_losses(self._micro_batches.start, values)
        for layer, seconds in zip(self._layers, self._seconds(), strict=True):
            ballot.put_seconds(layer.index, seconds)
            if self._first_replica:
                parts = [grads[layer.index][a:b] for a, b in self._counted[layer.index]]
                norms = [torch.linalg.vector_norm(part, dtype=torch.float64) for part in parts]
                ballot.put_squared_norm(layer.index, float(sum(n.item() ** 2 for n in norms)))
        if self._context.is_over(self._revision):
            ballot.asks_to_leave()
        self._context.probe("vote", self._context.memory.applied)
        return ballot.cast(self._groups.grid, self._context.wire)

    def _seconds(self) -> list[float]:
        """Forward and backward of each layer per micro-batch, this replica's share."""
        forward = sum(self._run.seconds) or 1.0
        factor = (1 + self._stage.backward_seconds / forward) / len(self._micro_batches)
        return [s * factor / self._num_replicas for s in self._run.seconds]

    def _refuse_non_finite(self, step: int, outcome: Outcome) -> None:
        for micro_batch, loss in enumerate(outcome.losses):
            if not math.isfinite(loss):
                raise TrainingFailed(
                    f"step {step}: the loss is {loss} in micro-batch {micro_batch}; lower the "
                    "learning rate, clip the gradient (clip_norm), or look at the data"
                )
        if not math.isfinite(outcome.gradient_norm):
            raise TrainingFailed(
                f"step {step}: the gradient's norm is {outcome.gradient_norm}; lower the "
                "learning rate, or look for a division by zero in the model"
            )

    def _commit(self, step: int, outcome: Outcome, grads: dict[int, Tensor]) -> None:
        context = self._context
        with user_code("the optimizer"), torch.no_grad():
            scale = outcome.scale(context.training.clip_norm)
            context.memory.commit(grads, scale, context.training.optimizer)
        context.journal.write(
            CommitLine(
                revision=self._revision,
                step=step,
                at_unix_s=time.time(),
                loss=outcome.loss,
            )
        )


def _schedule(
    stage: ParcaeStage, num_micro_batches: int, loss: Callable[[Tensor, Tensor], Tensor]
) -> PipelineScheduleSingle:
    """1F1B; GPipe where a pipeline has fewer micro-batches than stages."""
    kind = Schedule1F1B if num_micro_batches >= stage.num_stages else ScheduleGPipe
    return kind(stage, n_microbatches=num_micro_batches, loss_fn=loss, scale_grads=False)
