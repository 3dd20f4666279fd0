"""The proof that a disturbed run computed what an undisturbed one does, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache

import torch
from crew import Crew
from safetensors.torch import load_file
from torch import Tensor

from parcae_agent.checkpoint import layer_file
from parcae_agent.reference import Reference
from parcae_agent.training import load_training
from parcae_api.job import Entrypoint, Reduction


class Undisturbed:
    """The plain loop, run as far as it was asked about, with what it had after every step."""

    def __init__(self, function: str, arguments: str, search_path: str, seed: int) -> None:
        """``arguments`` as JSON."""
        torch.set_num_threads(1)
        entrypoint = Entrypoint(function=function, args=json.loads(arguments))
        training = load_training(entrypoint, search_path=search_path)
        self._reference = Reference.start(training, seed)
        self._steps: Iterator[float] = self._reference.losses(1_000_000)
        self._losses: list[float] = []
        self._states = [self._state()]

    def losses(self, steps: int) -> list[float]:
        self._run(steps)
        return self._losses[:steps]

    def state(self, steps: int) -> list[Tensor]:
        """Parameters and optimizer state of all layers after that many steps."""
        self._run(steps)
        return self._states[steps]

    def _run(self, steps: int) -> None:
        while len(self._losses) < steps:
            self._losses.append(next(self._steps))
            self._states.append(self._state())

    def _state(self) -> list[Tensor]:
        return [layer.flat.clone() for layer in self._reference.layers]


_undisturbed = lru_cache(maxsize=4)(Undisturbed)


def undisturbed(crew: Crew) -> Undisturbed:
    """An undisturbed run of the crew's training."""
    entrypoint, spec = crew.spec.entrypoint, crew.spec
    arguments = json.dumps(entrypoint.args, sort_keys=True)
    return _undisturbed(entrypoint.function, arguments, crew.search_path, spec.seed)


def saved_state(crew: Crew, step: int) -> list[Tensor]:
    """The state of every layer that the crew wrote at a step."""
    files = [layer_file(crew.checkpoints, step, k) for k in range(crew.layers)]
    return [load_file(path)["state"] for path in files]


def assert_sound(crew: Crew, steps: int) -> None:
    """Every micro-batch of every step entered once, in every layer."""
    ledger = crew.ledger()
    assert not ledger.problems, str(crew)
    assert ledger.is_sound
    assert [line.step for line in ledger.steps] == list(range(steps)), str(crew)


def assert_same_bits(crew: Crew, steps: int) -> None:
    """Losses by the ledger, parameters and optimizer state by the files: as if undisturbed."""
    assert crew.spec.reduction is Reduction.EXACT
    assert_sound(crew, steps)
    expected = undisturbed(crew)
    assert [line.loss for line in crew.ledger().steps] == expected.losses(steps), str(crew)
    both = zip(expected.state(steps), saved_state(crew, steps), strict=True)
    wrong = [index for index, (state, saved) in enumerate(both) if not torch.equal(state, saved)]
    assert not wrong, f"layers {wrong} at step {steps}; {crew}"


def settle(crew: Crew) -> int:
    """Let it train on a little, pause, and compare everything; the steps committed by then."""
    crew.wait_one_more()
    revision = crew.pause()
    crew.wait_idle(revision, *crew.alive)
    # One that stayed behind saves its old state, too: what counts is the newest epoch's.
    holdings = [crew.hands[name].state.holding for name in crew.alive]
    _, newest = max((h.revision, h.step) for h in holdings if h is not None)
    steps = crew.wait_saved(newest)
    assert_same_bits(crew, steps)
    return steps
