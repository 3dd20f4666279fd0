"""The proof that a disturbed run computed what an undisturbed one does, bit for bit."""

from __future__ import annotations

import json
from functools import lru_cache

import torch
from crew import Crew
from safetensors.torch import load_file
from torch import Tensor

from parcae_agent.checkpoint import layer_file
from parcae_agent.reference import Reference
from parcae_agent.training import load_training
from parcae_api.job import Entrypoint, Reduction


@lru_cache(maxsize=32)
def undisturbed(
    function: str, arguments: str, search_path: str, seed: int, steps: int
) -> tuple[tuple[float, ...], tuple[Tensor, ...]]:
    """Losses and final state of the plain loop; ``arguments`` as JSON."""
    torch.set_num_threads(1)
    entrypoint = Entrypoint(function=function, args=json.loads(arguments))
    training = load_training(entrypoint, search_path=search_path)
    reference = Reference.start(training, seed)
    losses = tuple(reference.losses(steps))
    return losses, tuple(layer.flat for layer in reference.layers)


def expected(crew: Crew, steps: int) -> tuple[tuple[float, ...], tuple[Tensor, ...]]:
    """What an undisturbed run of the crew's training gives."""
    entrypoint, spec = crew.spec.entrypoint, crew.spec
    arguments = json.dumps(entrypoint.args, sort_keys=True)
    return undisturbed(entrypoint.function, arguments, crew.search_path, spec.seed, steps)


def saved_state(crew: Crew, step: int) -> list[Tensor]:
    """The state of every layer that the crew wrote at a step."""
    files = [layer_file(crew.checkpoints, step, k) for k in range(crew.layers)]
    return [load_file(path)["state"] for path in files]


def assert_sound(crew: Crew, steps: int) -> None:
    """Every micro-batch of every step entered once, in every layer."""
    ledger = crew.ledger()
    assert not ledger.problems, crew
    assert ledger.is_sound
    assert [line.step for line in ledger.steps] == list(range(steps)), crew


def assert_same_bits(crew: Crew, steps: int) -> None:
    """Losses by the ledger, parameters and optimizer state by the files: as if undisturbed."""
    assert crew.spec.reduction is Reduction.EXACT
    assert_sound(crew, steps)
    losses, states = expected(crew, steps)
    assert [line.loss for line in crew.ledger().steps] == list(losses), crew
    for index, (state, saved) in enumerate(zip(states, saved_state(crew, steps), strict=True)):
        assert torch.equal(state, saved), f"layer {index}; {crew}"
