"""What a worker holds between epochs, and what it says of it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from parcae_agent import SGD
from parcae_agent.layer_state import LayerState
from parcae_agent.memory import Memory, Pending

CPU = torch.device("cpu")
OPTIMIZER = SGD(lr=0.1)


def memory(*indices: int) -> Memory:
    held = Memory()
    for index in indices:
        layer = LayerState(index, nn.Linear(4, 4), OPTIMIZER, CPU)
        layer.initialize()
        held.layers[index] = layer
    return held


def grads(held: Memory) -> dict[int, Tensor]:
    return {index: torch.ones(layer.numel) for index, layer in held.layers.items()}


def test_a_holding_never_claims_what_is_not_there() -> None:
    """A migration that broke leaves what had arrived beside what was held."""
    holding = memory(0, 3, 4, 5, 7, 8).holding()
    assert holding is not None
    assert holding.layers == range(3, 6)
    assert Memory().holding() is None


def test_a_commit_counts_and_forgets_the_kept_gradient() -> None:
    held = memory(0, 1)
    held.pending, held.attempting = Pending(0, grads(held)), True
    held.commit(held.pending.grads, 0.5, OPTIMIZER)
    assert (held.applied, held.reached, held.commit_scale) == (1, 1, 0.5)
    assert held.pending is None
    assert not held.attempting
    record = held.record("w", (4,))
    assert (record.applied, record.layers, record.pending) == (1, (0, 1), None)
    assert record.checkpoints == (4,)


def test_clipping_scales_the_gradient() -> None:
    whole, half = memory(0), memory(0)
    half.layers[0].flat.copy_(whole.layers[0].flat)
    whole.commit({0: torch.full((32,), 0.5)}, 1.0, OPTIMIZER)
    half.commit({0: torch.ones(32)}, 0.5, OPTIMIZER)
    assert torch.equal(whole.layers[0].flat, half.layers[0].flat)


def test_forgotten_layers_stay_as_skeletons_and_come_back_in_the_same_memory() -> None:
    held = memory(0, 1)
    flat = held.layers[1].flat
    held.forget()
    assert not held.layers
    assert held.record("w", ()).layers == ()
    assert held.skeletons[1].flat is flat


def test_unused_memory_is_kept_up_to_the_size_of_what_is_held() -> None:
    held = memory(0, 1, 2, 3, 4)
    held.retain(range(3, 5))
    assert set(held.layers) == {3, 4}
    assert len(held.skeletons) == 2
    held.retain(range(3, 4))
    assert len(held.skeletons) == 1
