"""Summing a stage's gradients over its replicas.

``exact``: every replica holds a few nodes of the summation tree. The flat gradient is cut into
D chunks; replica j receives chunk j of every node (all-to-all), sums it in the tree's order,
and the sums are gathered. For equal powers of two this moves what a ring all-reduce moves.
``fast``: one all-reduce.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from parcae_agent.gradients import StageGradients
from parcae_agent.tree import Node, TreeSum, nodes_of
from parcae_agent.wire import Wire
from parcae_api.job import Reduction


class Reducer(ABC):
    """Turns a stage's collected gradients into the mean over the global batch."""

    @abstractmethod
    def reduce(self, gradients: StageGradients) -> Tensor:
        """The mean gradient [numel], the same on every replica. Valid until the next call.

        Raises:
            RuntimeError: a replica died or the epoch was broken.
        """


def make_reducer(
    reduction: Reduction,
    *,
    micro_batches: Sequence[range],
    replica: int,
    numel: int,
    dtype: torch.dtype,
    device: torch.device,
    group: dist.ProcessGroup | None,
    wire: Wire,
) -> Reducer:
    """Build the reducer of a stage.

    Args:
        reduction: ``exact`` or ``fast``.
        micro_batches: Global micro-batch indices of every replica.
        replica: This worker's.
        numel: Elements of the stage's flat gradient.
        dtype: Of the gradients.
        device: Where they are.
        group: The D replicas of the stage in order; None when D is 1.
        wire: What carries the exchange.
    """
    total = sum(len(r) for r in micro_batches)
    if reduction is Reduction.EXACT:
        return _Exact(micro_batches, replica, numel, total, dtype, device, group, wire)
    return _Fast(numel, total, dtype, device, group, wire)


class _Fast(Reducer):
    def __init__(
        self,
        numel: int,
        total: int,
        dtype: torch.dtype,
        device: torch.device,
        group: dist.ProcessGroup | None,
        wire: Wire,
    ) -> None:
        self._row = torch.zeros((1, numel), dtype=dtype, device=device)
        self._total = total
        self._group = group
        self._wire = wire

    def reduce(self, gradients: StageGradients) -> Tensor:
        gradients.write_rows(self._row)
        if self._group is not None and self._row.numel():
            self._wire.all_reduce(self._row, self._group)
        return self._row[0].div_(self._total)


class _Exact(Reducer):
    def __init__(
        self,
        micro_batches: Sequence[range],
        replica: int,
        numel: int,
        total: int,
        dtype: torch.dtype,
        device: torch.device,
        group: dist.ProcessGroup | None,
        wire: Wire,
    ) -> None:
        self._numel = numel
        self._total = total
        self._group = group
        self._wire = wire
        self._nodes = [nodes_of(leaves) for leaves in micro_batches]
        num_replicas = len(micro_batches)
        unit = num_replicas * (64 // dtype.itemsize)
        padded = -(-numel // unit) * unit
        self._chunk = padded // num_replicas
        self._own = len(self._nodes[replica])
        incoming = sum(len(nodes) for nodes in self._nodes)
        self._rows = torch.zeros((self._own, padded), dtype=dtype, device=device)
        if group is None:
            return
        self._sent = torch.empty_like(self._rows) if self._own > 1 else self._rows
        self._received = torch.empty((incoming, self._chunk), dtype=dtype, device=device)
        self._gathered = torch.empty(padded, dtype=dtype, device=device)

    def reduce(self, gradients: StageGradients) -> Tensor:
        gradients.write_rows(self._rows[:, : self._numel])
        if self._group is None:
            summed = _tree_sum(gradients.nodes(), list(self._rows))
            return summed[: self._numel].div_(self._total)
        if not self._numel:
            return self._gathered
        self._exchange(self._group)
        nodes = [node for held in self._nodes for node in held]
        chunk = _tree_sum(nodes, list(self._received)).div_(self._total)
        self._wire.all_gather(self._gathered, chunk, self._group)
        return self._gathered[: self._numel]

    def _exchange(self, group: dist.ProcessGroup) -> None:
        """Give every replica its chunk of all nodes."""
        replicas = len(self._nodes)
        if self._own > 1:
            by_chunk = self._rows.view(self._own, replicas, self._chunk).transpose(0, 1)
            self._sent.view(replicas, self._own, self._chunk).copy_(by_chunk)
        self._wire.all_to_all(
            self._received.view(-1),
            self._sent.view(-1),
            [len(nodes) * self._chunk for nodes in self._nodes],
            [self._own * self._chunk] * replicas,
            group,
        )


def _tree_sum(nodes: Sequence[Node], rows: Sequence[Tensor]) -> Tensor:
    summed: TreeSum[Tensor] = TreeSum(lambda left, right: left.add_(right))
    for node, row in zip(nodes, rows, strict=True):
        summed.insert(node, row)
    return summed.total()
