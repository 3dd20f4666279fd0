"""Gradients of a stage within a step: collected per micro-batch, laid out flat for the wire.

``exact`` keeps the nodes of the summation tree; ``fast`` one running sum. Both take a
micro-batch's gradients right after its backward and leave ``parameter.grad`` empty, so that
nothing is summed in an order that the schedule chose.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from parcae_agent.layer_state import LayerState, common_dtype
from parcae_agent.tree import Node, TreeSum
from parcae_api.errors import InputError
from parcae_api.job import Reduction


def _add_lists(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
    if left:
        torch._foreach_add_(left, right)
    return left


class StageGradients:
    """Gradients of the layers of one stage."""

    def __init__(self, layers: Sequence[LayerState], reduction: Reduction) -> None:
        self._reduction = reduction
        self._parameters: list[nn.Parameter] = [p for layer in layers for p in layer.parameters]
        self._starts: list[int] = []
        base = 0
        for layer in layers:
            self._starts += [base + span.start for span in layer.spans]
            base += layer.numel
        self.dtype = common_dtype(layers)
        """Of the flat gradient."""
        self._gaps = _gaps(layers)
        self.numel = base
        """Elements of the stage's flat gradient: the layers' rows one after the other."""
        self.micro_batches: list[int] = []
        """Global indices whose gradients are in, in the order they came."""
        self._sum: TreeSum[list[Tensor]] = TreeSum(_add_lists)

    def reset(self) -> None:
        """Forget everything: a new step, or one that is thrown away."""
        self.micro_batches = []
        self._sum = TreeSum(_add_lists)
        for parameter in self._parameters:
            parameter.grad = None

    def take(self, micro_batch: int) -> None:
        """Take the gradients that the backward of ``micro_batch`` just left in the parameters."""
        grads = [_dense(p) for p in self._parameters]
        for parameter in self._parameters:
            parameter.grad = None
        if self._reduction is Reduction.EXACT or not self.micro_batches:
            leaf = micro_batch if self._reduction is Reduction.EXACT else 0
            self._sum.insert(Node(0, leaf), grads)
        else:
            _add_lists(self._sum.total(), grads)
        self.micro_batches.append(micro_batch)

    def nodes(self) -> list[Node]:
        """The tree nodes held, in leaf order; a single meaningless one in ``fast``."""
        return [node for node, _ in self._sum.nodes()]

    def write_rows(self, rows: Tensor) -> None:
        """Lay the held nodes out in ``rows`` [nodes, numel], alignment gaps as zeros."""
        for row, (_, grads) in zip(rows, self._sum.nodes(), strict=True):
            for start, stop in self._gaps:
                row[start:stop].zero_()  # the optimizer used this memory in the last step
            for start, grad in zip(self._starts, grads, strict=True):
                row[start : start + grad.numel()].copy_(grad.view(-1))


def _dense(parameter: nn.Parameter) -> Tensor:
    grad = parameter.grad
    if grad is None:
        return torch.zeros_like(parameter)
    if grad.layout is not torch.strided:
        raise InputError(
            f"Training.layers: a parameter of shape {tuple(parameter.shape)} has gradients of "
            f"layout {grad.layout}; use dense ones (sparse=False)"
        )
    return grad.contiguous()


def _gaps(layers: Sequence[LayerState]) -> list[tuple[int, int]]:
    """The elements of the stage's flat gradient that belong to no parameter."""
    gaps: list[tuple[int, int]] = []
    base = 0
    for layer in layers:
        edges = [0, *(edge for span in layer.spans for edge in (span.start, span.stop))]
        edges.append(layer.numel)
        pairs = zip(edges[::2], edges[1::2], strict=True)
        gaps += [(base + a, base + b) for a, b in pairs if a < b]
        base += layer.numel
    return gaps
