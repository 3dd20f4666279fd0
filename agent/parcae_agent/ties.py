"""Tied parameters: every layer keeps its own copy, and all copies see the sum of all gradients.

Two copies are kept even where one worker holds both, so that the order of additions, and with
it the bits, never depend on where a stage ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from parcae_agent.layer_state import LayerState
from parcae_agent.training import Training
from parcae_agent.wire import Wire
from parcae_api.plan import Layout


@dataclass(frozen=True)
class Copy:
    """One of the copies of a tied parameter."""

    layer: int
    name: str


def tie_groups(training: Training) -> list[tuple[Copy, ...]]:
    """All copies of each tied parameter, the first layer's first."""
    groups: dict[Copy, list[Copy]] = {}
    roots: dict[Copy, Copy] = {}
    for index, layer in enumerate(training.layers):
        for own, target in layer.ties.items():
            name, _, parameter = target.partition(".")
            source = Copy(training.layer_index(name), parameter)
            root = roots.get(source, source)
            roots[Copy(index, own)] = root
            groups.setdefault(root, [root]).append(Copy(index, own))
    return [tuple(copies) for copies in groups.values()]


class TiedGradients:
    """Sums the gradients of tied parameters within one pipeline."""

    def __init__(
        self,
        groups: Sequence[tuple[Copy, ...]],
        layout: Layout,
        stage: int,
        layers: Mapping[int, LayerState],
        group: dist.ProcessGroup,
        wire: Wire,
    ) -> None:
        self._stage = stage
        self._layers = layers
        self._group = group
        self._wire = wire
        self._stage_of = {
            layer: p for p in range(layout.configuration.pipeline) for layer in layout.layers(p)
        }
        self._groups = [
            copies for copies in groups if any(self._stage_of[c.layer] == stage for c in copies)
        ]

    def sum(self, grads: Mapping[int, Tensor]) -> None:
        """Replace each copy's gradient by the sum over all copies, in place.

        Args:
            grads: This stage's reduced gradients by layer index.

        Raises:
            RuntimeError: a stage of this pipeline died or the epoch was broken.
        """
        for copies in self._groups:
            parts = self._exchange(copies, grads)
            total = parts[0].clone()
            for part in parts[1:]:
                total.add_(part)
            for copy in copies:
                if copy.layer in grads:
                    self._slice(copy, grads).copy_(total)

    def _slice(self, copy: Copy, grads: Mapping[int, Tensor]) -> Tensor:
        span = self._layers[copy.layer].span(copy.name)
        return grads[copy.layer][span.start : span.stop]

    def _exchange(self, copies: Sequence[Copy], grads: Mapping[int, Tensor]) -> list[Tensor]:
        """Every copy's gradient; those of other stages are received."""
        stages = sorted({self._stage_of[copy.layer] for copy in copies})
        mine = [copy for copy in copies if copy.layer in grads]
        example = self._slice(mine[0], grads)
        parts: list[Tensor] = []
        operations: list[dist.P2POp] = []
        for copy in copies:
            owner = self._stage_of[copy.layer]
            if owner == self._stage:
                part = self._slice(copy, grads)
                operations += [self._op(dist.isend, part, s) for s in stages if s != owner]
            else:
                part = torch.empty_like(example)
                operations.append(self._op(dist.irecv, part, owner))
            parts.append(part)
        self._wire.exchange(operations)
        return parts

    def _op(self, kind: Callable[..., dist.Work | None], part: Tensor, stage: int) -> dist.P2POp:
        return dist.P2POp(kind, part, group=self._group, group_peer=stage)


def counted_once(groups: Sequence[tuple[Copy, ...]], layer: LayerState) -> list[tuple[int, int]]:
    """The parts of a layer's gradient that enter the global norm: later copies do not."""
    later = {copy.name for copies in groups for copy in copies[1:] if copy.layer == layer.index}
    parts = []
    start = 0
    for span in layer.spans:
        if span.name in later:
            parts.append((start, span.start))
            start = span.stop
    parts.append((start, layer.numel))
    return [(a, b) for a, b in parts if a < b]
