"""One stage of the pipeline: a run of layers, run micro-batch by micro-batch.

``torch.distributed.pipelining`` owns the schedule and the messages. The subclass here knows
which micro-batch is running: it keys randomness by it, takes the gradients after each backward,
and measures the layers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage

from parcae_agent.gradients import StageGradients
from parcae_agent.layer_state import LayerState
from parcae_agent.probe import Probe
from parcae_agent.randomness import mix, seed_generators
from parcae_agent.shapes import Boundary
from parcae_agent.user_code import user_code
from parcae_agent.wire import Wire
from parcae_api.errors import InputError


class LayerRun(nn.Module):
    """The layers of one stage in order, each drawing from its own seed."""

    def __init__(
        self,
        layers: Sequence[LayerState],
        names: Sequence[str],
        boundaries: Sequence[Boundary],
        base: int,
    ) -> None:
        """``boundaries`` are the first layer's input and every layer's output."""
        super().__init__()
        self.layers = nn.ModuleList([layer.module for layer in layers])
        self._indices = [layer.index for layer in layers]
        self._names = names
        self._outputs = boundaries[1:]
        self._base = base
        self._step = 0
        self._micro_batch = 0
        self.seconds = [0.0] * len(layers)
        """Forward time of each layer since the last ``reset_timers``."""

    def reset_timers(self) -> None:
        """Start measuring anew."""
        self.seconds = [0.0] * len(self.seconds)

    def at(self, step: int, micro_batch: int) -> None:
        """Say what runs next: the keys of its randomness."""
        self._step = step
        self._micro_batch = micro_batch

    def forward(self, value: Tensor) -> Tensor:
        """Run all layers on one micro-batch.

        A cut between two layers must not show: what arrives from another stage may be changed
        in place, like the output of a layer here.
        """
        if value.requires_grad:
            value = value.clone()
        for position, layer in enumerate(self.layers):
            started = time.perf_counter()
            seed = mix(self._base, self._step, self._micro_batch, self._indices[position])
            seed_generators(seed, value.device)
            with user_code(f"layer {self._names[position]!r}"):
                value = layer(value)
            self._check(position, value)
            self.seconds[position] += time.perf_counter() - started
        return value

    def _check(self, position: int, value: object) -> None:
        """Refuse another shape than the survey's: the next stage's buffers have that one."""
        expected = self._outputs[position]
        if isinstance(value, Tensor):
            if value.shape == expected.shape and value.dtype == expected.dtype:
                return
            value = Boundary.of(value)
        raise InputError(
            f"Training.layers: {self._names[position]!r} returned {_outline(value)} in step "
            f"{self._step}, but {expected} at first; let forward always return the same"
        )


def _outline(value: object) -> str:
    return str(value) if isinstance(value, Boundary) else type(value).__name__


class ParcaeStage(PipelineStage):
    """A pipeline stage that knows the global index of the micro-batch it runs."""

    def __init__(
        self,
        run: LayerRun,
        gradients: StageGradients,
        micro_batches: range,
        *,
        stage: int,
        num_stages: int,
        boundaries: Sequence[Boundary],
        device: torch.device,
        group: dist.ProcessGroup,
        wire: Wire,
        probe: Probe,
    ) -> None:
        super().__init__(
            run,
            stage,
            num_stages,
            device,
            input_args=boundaries[0].meta(),
            output_args=boundaries[-1].meta(),
            group=group,
        )
        self._run = run
        self._gradients = gradients
        self._micro_batches = micro_batches
        self._wire = wire
        self._probe = probe
        self.step = 0
        self.backward_seconds = 0.0

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Run the forward of one micro-batch with its own randomness."""
        self._run.at(self.step, self._micro_batches[fwd_chunk_id])
        output = super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)
        self._probe("forward", self.step)
        return output

    def backward_one_chunk(self, bwd_chunk_id: int, *args: Any, **kwargs: Any) -> None:
        """Run the backward of one micro-batch and take its gradients."""
        started = time.perf_counter()
        with user_code(f"the backward of stage {self.stage_index}"):
            super().backward_one_chunk(bwd_chunk_id, *args, **kwargs)
            self._gradients.take(self._micro_batches[bwd_chunk_id])
        self.backward_seconds += time.perf_counter() - started
        self._probe("backward", self.step)

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """See ``Wire.watched``; so do the three below."""
        return self._wire.watched(super().get_fwd_recv_ops(fwd_chunk_id))

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """Gradients of the outputs."""
        return self._wire.watched(super().get_bwd_recv_ops(bwd_chunk_id))

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """Outputs."""
        return self._wire.watched(super().get_fwd_send_ops(fwd_chunk_id))

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """Gradients of the inputs."""
        return self._wire.watched(super().get_bwd_send_ops(bwd_chunk_id))
