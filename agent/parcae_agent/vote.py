"""The vote: one small all-reduce by which a step is committed everywhere or nowhere.

Every worker of the grid enters it only after its gradients are reduced; that it returns at all
is the outcome "all have reduced". It also carries what all must know alike: the loss of every
micro-batch, the gradient's norm, whether anyone has seen a newer plan, measured layer times.
Every number but the times is put in by one worker alone (zeros elsewhere), so their sums are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from parcae_agent.wire import Wire

_HEAD = 1


@dataclass(frozen=True)
class Outcome:
    """What the vote said, the same on every worker."""

    losses: tuple[float, ...]
    """Per micro-batch."""
    squared_norms: tuple[float, ...]
    """Per layer, of the mean gradient."""
    layer_seconds: tuple[float, ...]
    """Per layer and micro-batch, averaged over replicas."""
    leaves: bool
    """Someone knows why: all leave after this step."""

    @property
    def loss(self) -> float:
        """Mean over the global batch."""
        return sum(self.losses) / len(self.losses)

    @property
    def gradient_norm(self) -> float:
        """Global norm of the mean gradient."""
        return math.sqrt(sum(self.squared_norms))

    def scale(self, clip_norm: float | None) -> float:
        """Factor that brings the gradient to at most ``clip_norm``."""
        if clip_norm is None:
            return 1.0
        return min(1.0, clip_norm / (self.gradient_norm + 1e-6))


class Ballot:
    """One worker's part of the vote."""

    def __init__(self, num_micro_batches: int, num_layers: int, device: torch.device) -> None:
        self._m, self._l = num_micro_batches, num_layers
        size = _HEAD + num_micro_batches + 2 * num_layers
        self._local = torch.zeros(size, dtype=torch.float64)
        self._device = device

    def clear(self) -> None:
        """Begin a new step."""
        self._local.zero_()

    def asks_to_leave(self) -> None:
        """This worker knows of a plan beyond the epoch's, or is to quit."""
        self._local[0] = 1.0

    def put_losses(self, first: int, losses: Tensor) -> None:
        """Losses of this pipeline's micro-batches, from the last stage."""
        self._local[_HEAD + first : _HEAD + first + len(losses)] = losses

    def put_squared_norm(self, layer: int, value: float) -> None:
        """Of one layer, from the first replica."""
        self._local[_HEAD + self._m + layer] = value

    def put_seconds(self, layer: int, value: float) -> None:
        """This replica's share of the mean time of a layer."""
        self._local[_HEAD + self._m + self._l + layer] = value

    def cast(self, group: dist.ProcessGroup | None, wire: Wire) -> Outcome:
        """Vote.

        Args:
            group: The workers of the grid; None for a grid of one.
            wire: What carries it.

        Raises:
            RuntimeError: a worker died or the epoch was broken; the outcome is unknown.
        """
        if group is not None:
            shared = self._local.to(self._device)
            wire.all_reduce(shared, group)
            self._local.copy_(shared)
        values = self._local.tolist()
        losses, rest = values[_HEAD : _HEAD + self._m], values[_HEAD + self._m :]
        return Outcome(
            losses=tuple(losses),
            squared_norms=tuple(rest[: self._l]),
            layer_seconds=tuple(rest[self._l :]),
            leaves=values[0] > 0,
        )
