"""Which samples a micro-batch holds: a pure function that uses each sample once per epoch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from parcae_agent.data import Batches, SampleOrder
from parcae_api.errors import InputError


class Numbers:
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, float]:
        return index, float(index)


def batches(samples: Any, *, micro_batch: int, count: int, seed: int = 3, **more: Any) -> Batches:
    return Batches(samples, seed=seed, micro_batch=micro_batch, num_micro_batches=count, **more)


@given(
    size=st.integers(1, 40),
    micro_batch=st.integers(1, 7),
    count=st.integers(1, 5),
    seed=st.integers(0, 9),
)
def test_every_sample_comes_once_per_epoch_across_its_borders(
    size: int, micro_batch: int, count: int, seed: int
) -> None:
    loader = batches(Numbers(size), micro_batch=micro_batch, count=count, seed=seed)
    epochs = 3
    steps = -(-size * epochs // (micro_batch * count))
    stream = [
        int(index) for s in range(steps) for m in range(count) for index in loader.load(s, m)[0]
    ]
    for epoch in range(epochs):
        assert sorted(stream[epoch * size : (epoch + 1) * size]) == list(range(size))


def test_the_order_depends_on_nothing_but_seed_and_position() -> None:
    order, again = SampleOrder(50, 1), SampleOrder(50, 1)
    forward = [order.indices(range(a, a + 7)) for a in range(0, 300, 7)]
    backward = [again.indices(range(a, a + 7)) for a in reversed(range(0, 300, 7))]
    assert forward == backward[::-1]
    assert forward != [SampleOrder(50, 2).indices(range(a, a + 7)) for a in range(0, 300, 7)]
    assert order.indices(range(0, 50)) != order.indices(range(50, 100))


def test_a_batch_is_input_and_target_with_an_axis_of_samples() -> None:
    inputs, targets = batches(Numbers(10), micro_batch=4, count=2).load(5, 1)
    assert inputs.shape == targets.shape == (4,)
    assert inputs.tolist() == targets.tolist()


@pytest.mark.parametrize(
    ("collate", "outline"),
    [
        (lambda samples: {"x": torch.zeros(2)}, "dict"),
        (lambda samples: torch.zeros(2, 2), "Tensor"),
        (lambda samples: (torch.zeros(2), ["a", "b"]), "tuple of Tensor, list"),
        (lambda samples: [torch.zeros(2)] * 3, "list of Tensor, Tensor, Tensor"),
    ],
)
def test_what_is_no_pair_of_tensors_is_refused(collate: Any, outline: str) -> None:
    loader = batches(Numbers(10), micro_batch=2, count=2, collate=collate)
    with pytest.raises(InputError, match=f"samples collate to {outline}; let every sample be"):
        loader.load(0, 0)
