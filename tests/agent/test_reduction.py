"""Summing over replicas: the same bits for any split of the micro-batches, and the true mean."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from parcae_agent import SGD, Layer, Training
from parcae_agent.gradients import StageGradients
from parcae_agent.layer_state import LayerState, build_layer
from parcae_agent.reduction import make_reducer
from parcae_api.errors import InputError
from parcae_api.job import Reduction

CPU = torch.device("cpu")
GROUP: Any = object()


@dataclass
class Hub:
    """A wire within one process: threads meet at a barrier and read each other's tensors."""

    size: int
    barrier: threading.Barrier = field(init=False)
    slots: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.size, timeout=30)

    def swap(self, rank: int, tensor: Tensor) -> list[Tensor]:
        self.slots[rank] = tensor.clone()
        self.barrier.wait()
        everyone = [self.slots[r] for r in range(self.size)]
        self.barrier.wait()
        return everyone


@dataclass
class LocalWire:
    """What a reducer uses of ``parcae_agent.wire.Wire``."""

    hub: Hub
    rank: int

    def all_reduce(self, tensor: Tensor, group: object) -> None:
        tensor.copy_(sum(self.hub.swap(self.rank, tensor)[1:], self.hub.slots[0].clone()))

    def all_gather(self, output: Tensor, tensor: Tensor, group: object) -> None:
        output.copy_(torch.cat(self.hub.swap(self.rank, tensor)))

    def all_to_all(
        self,
        output: Tensor,
        tensor: Tensor,
        output_sizes: list[int],
        input_sizes: list[int],
        group: object,
    ) -> None:
        assert len(set(input_sizes)) == 1
        assert sum(input_sizes) == tensor.numel()
        parts = [sent.chunk(self.hub.size)[self.rank] for sent in self.hub.swap(self.rank, tensor)]
        assert [part.numel() for part in parts] == output_sizes
        output.copy_(torch.cat(parts))


class Odd(nn.Module):
    """Parameters whose sizes leave gaps, a frozen one, and one that gets no gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(3))
        self.frozen = nn.Parameter(torch.randn(7), requires_grad=False)
        self.b = nn.Parameter(torch.randn(5, 5))
        self.unused = nn.Parameter(torch.randn(2))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.b * self.a.sum() + self.frozen.sum()


def layers_of(kind: str) -> list[LayerState]:
    builds = {
        "mixed": [Odd, nn.Identity, lambda: nn.Linear(5, 5), Odd],
        "empty": [nn.Identity, nn.Identity],
    }[kind]
    training = Training(
        layers=[Layer(str(i), build) for i, build in enumerate(builds)],
        loss=nn.functional.mse_loss,
        data=[0],
        optimizer=SGD(lr=0.1),
        global_batch=1,
        micro_batch=1,
        steps=1,
    )
    layers = [build_layer(training, i, 0, CPU) for i in range(len(builds))]
    for layer in layers:
        layer.initialize()
    return layers


def backward(layers: Sequence[LayerState], micro_batch: int) -> None:
    generator = torch.Generator().manual_seed(micro_batch)
    value = torch.randn(2, 5, generator=generator, requires_grad=True)
    for layer in layers:
        value = layer.module(value)
    (value.sin().sum() * 10.0 ** (micro_batch % 7 - 3)).backward()


def reduce_by(split: Sequence[int], reduction: Reduction, kind: str = "mixed") -> list[Tensor]:
    """The mean gradient as every replica has it, when ``split[d]`` micro-batches run on each."""
    edges = [0, *accumulate(split)]
    ranges = [range(a, b) for a, b in pairwise(edges)]
    hub = Hub(len(split))
    built = [layers_of(kind) for _ in split]  # not in the threads: they share a generator

    def replica(rank: int) -> Tensor:
        layers = built[rank]
        gradients = StageGradients(layers, reduction)
        reducer = make_reducer(
            reduction,
            micro_batches=ranges,
            replica=rank,
            numel=gradients.numel,
            dtype=gradients.dtype,
            device=CPU,
            group=GROUP if len(split) > 1 else None,
            wire=LocalWire(hub, rank),  # type: ignore[arg-type]
        )
        for _ in range(2):  # the second time its buffers are used ones
            gradients.reset()
            for micro_batch in ranges[rank]:
                backward(layers, micro_batch)
                gradients.take(micro_batch)
            mean = reducer.reduce(gradients)
            kept = mean.clone()
            mean.fill_(float("nan"))  # the optimizer uses the gradient up
        assert gradients.micro_batches == list(ranges[rank])
        return kept

    with ThreadPoolExecutor(len(split)) as threads:
        futures = [threads.submit(replica, rank) for rank in range(len(split))]
        return [future.result() for future in futures]


@settings(max_examples=25, deadline=None)
@given(split=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_exact_gives_the_same_bits_for_any_split(split: list[int]) -> None:
    alone = reduce_by([sum(split)], Reduction.EXACT)[0]
    for mean in reduce_by(split, Reduction.EXACT):
        assert torch.equal(mean, alone)


@pytest.mark.parametrize("split", [[8], [4, 4], [3, 3, 2], [1, 6, 1], [2, 2, 2, 2]])
def test_fast_gives_the_mean_on_every_replica(split: list[int]) -> None:
    exact = reduce_by([8], Reduction.EXACT)[0]
    means = reduce_by(split, Reduction.FAST)
    for mean in means:
        assert torch.equal(mean, means[0])
        torch.testing.assert_close(mean, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reduction", list(Reduction))
@pytest.mark.parametrize("split", [[3], [3, 3, 2]])
def test_a_stage_may_have_no_parameter(split: list[int], reduction: Reduction) -> None:
    assert all(mean.numel() == 0 for mean in reduce_by(split, reduction, "empty"))


def test_gaps_and_unused_parameters_are_zero() -> None:
    layers = layers_of("mixed")
    mean = reduce_by([3, 3, 2], Reduction.EXACT)[0]
    start = 0
    for layer in layers:
        row = mean[start : start + layer.numel].clone()
        for span in layer.spans:
            if span.name == "unused":
                assert not row[span.start : span.stop].any()
            else:
                assert row[span.start : span.stop].any()
            row[span.start : span.stop] = 0
        assert not row.any(), "a gap is not zero"
        start += layer.numel


def test_a_micro_batch_is_taken_once() -> None:
    layers = layers_of("mixed")
    gradients = StageGradients(layers, Reduction.EXACT)
    for micro_batch in range(4):
        backward(layers, micro_batch)
        gradients.take(micro_batch)
    with pytest.raises(ValueError, match="summed already"):
        gradients.take(2)


def test_take_leaves_no_gradient_behind() -> None:
    layers = layers_of("mixed")
    gradients = StageGradients(layers, Reduction.FAST)
    backward(layers, 0)
    gradients.take(0)
    assert all(p.grad is None for layer in layers for p in layer.module.parameters())


def test_sparse_gradients_are_refused() -> None:
    embedding = nn.Embedding(4, 2, sparse=True)
    layer = LayerState(0, embedding, SGD(lr=0.1), CPU)
    layer.initialize()
    gradients = StageGradients([layer], Reduction.EXACT)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(InputError, match="sparse=False"):
        gradients.take(0)
