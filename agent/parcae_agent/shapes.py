"""A survey of the model before anything is trained: sizes, and what passes between layers.

Static shapes given to the pipeline spare it a shape-inference run, which would call the user's
layers an extra time. Each layer is built on the meta device, where nothing is allocated or
computed; one that cannot live there is built and run on the CPU, and dropped again.

What cannot give the same bits on any layout, or cannot be cut into stages, is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from parcae_agent.layer_state import LayerState, build_layer
from parcae_agent.training import Training
from parcae_agent.user_code import user_code
from parcae_api.errors import InputError
from parcae_api.profile import LayerProfile, Profile


@dataclass(frozen=True)
class Boundary:
    """One tensor between two layers, for one micro-batch."""

    shape: torch.Size
    dtype: torch.dtype

    @classmethod
    def of(cls, value: Tensor) -> Boundary:
        """That of a tensor."""
        return cls(value.shape, value.dtype)

    @property
    def nbytes(self) -> int:
        """Size of one micro-batch's tensor."""
        return self.shape.numel() * self.dtype.itemsize

    def meta(self) -> Tensor:
        """A tensor without data, for the pipeline's static shapes."""
        grad = self.dtype.is_floating_point
        return torch.empty(self.shape, dtype=self.dtype, device="meta", requires_grad=grad)

    def __str__(self) -> str:
        return f"{self.dtype} of shape {tuple(self.shape)}"


@dataclass(frozen=True)
class Survey:
    """The model's outline."""

    profile: Profile
    boundaries: tuple[Boundary, ...]
    """The input of layer 0, then the output of every layer."""

    @property
    def micro_batch_tokens(self) -> int:
        """Tokens of one micro-batch; 0 where the input is no (sample, position) → token id."""
        shape, dtype = self.boundaries[0].shape, self.boundaries[0].dtype
        is_ids = not (dtype.is_floating_point or dtype.is_complex or dtype is torch.bool)
        return shape.numel() if is_ids and len(shape) == 2 else 0


def survey(training: Training, seed: int, sample: Tensor) -> Survey:
    """Look at every layer.

    Args:
        training: The user's.
        seed: The job's; layers are built with it.
        sample: The input of one micro-batch.

    Raises:
        InputError: a layer does not return one floating-point tensor, changes buffers, or mixes
            dtypes with others; a tie does not fit; nothing can be trained.
        UserCodeFailed: a layer cannot be built, or run on what the layer before returns.
    """
    boundaries = [Boundary.of(sample)]
    states: list[LayerState] = []
    for index in range(len(training.layers)):
        state, boundary = _look(training, index, seed, boundaries[-1])
        states.append(state)
        boundaries.append(boundary)
    _check_dtypes(training, states)
    _check_ties(training, states)
    profile = Profile(
        layers=tuple(
            LayerProfile(
                name=layer.name,
                param_bytes=state.numel * state.dtype.itemsize,
                state_bytes=state.nbytes,
                activation_bytes=boundary.nbytes,
            )
            for layer, state, boundary in zip(training.layers, states, boundaries[1:], strict=True)
        ),
        num_micro_batches=training.num_micro_batches,
        micro_batch_samples=training.micro_batch,
        total_steps=training.steps,
    )
    return Survey(profile, tuple(boundaries))


def _look(
    training: Training, index: int, seed: int, before: Boundary
) -> tuple[LayerState, Boundary]:
    name = training.layers[index].name
    meta = torch.device("meta")
    try:
        with meta:
            module = training.layers[index].build()
        return LayerState(index, module, training.optimizer, meta), _run(name, module, before, meta)
    except Exception:
        pass  # whatever it is, running for real tells who is to blame
    cpu = torch.device("cpu")
    state = build_layer(training, index, seed, cpu)
    with user_code(f"layer {name!r}"):
        return state, _run(name, state.module, before, cpu)


def _run(name: str, module: nn.Module, before: Boundary, device: torch.device) -> Boundary:
    """Run a layer twice: what its second run changes, every run would change."""
    _refuse_running_statistics(name, module)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for _ in range(2):
            before_run = {key: (b, b._version) for key, b in module.named_buffers()}
            value = torch.zeros(before.shape, dtype=before.dtype, device=device)
            output = module(value)
    for key, buffer in module.named_buffers():
        known, version = before_run.get(key, (None, 0))
        if known is not buffer or version != buffer._version:
            raise InputError(
                f"Training.layers: {name!r} changes its buffer {key!r} when it runs; only "
                "parameters move with a layer, so compute it from them or from the input"
            )
    if not isinstance(output, Tensor) or not output.dtype.is_floating_point:
        got = str(output.dtype) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"Training.layers: {name!r} returned {got}; forward must return one "
            "floating-point tensor"
        )
    return Boundary.of(output)


def _refuse_running_statistics(name: str, module: nn.Module) -> None:
    for part in module.modules():
        if getattr(part, "track_running_stats", False):
            raise InputError(
                f"Training.layers: {name!r} holds {type(part).__name__}, whose running "
                "statistics depend on who ran which micro-batch; use GroupNorm or LayerNorm, "
                "or track_running_stats=False"
            )


def _check_dtypes(training: Training, states: Sequence[LayerState]) -> None:
    """A stage's gradients travel as one vector, so all layers share one dtype."""
    trained = [state for state in states if state.numel]
    if not trained:
        raise InputError("Training.layers: no layer has a parameter to train; add one")
    for state in trained:
        if state.dtype != trained[0].dtype:
            first, other = training.layers[trained[0].index], training.layers[state.index]
            raise InputError(
                f"Training.layers: {other.name!r} has parameters of {state.dtype}, "
                f"{first.name!r} of {trained[0].dtype}; use one dtype, and torch.autocast in "
                "forward for mixed precision"
            )


def _check_ties(training: Training, states: Sequence[LayerState]) -> None:
    for layer, state in zip(training.layers, states, strict=True):
        spans = {span.name: span for span in state.spans}
        for own, target in layer.ties.items():
            name, _, parameter = target.partition(".")
            source = states[training.layer_index(name)]
            mine = spans.get(own)
            theirs = next((span for span in source.spans if span.name == parameter), None)
            if mine is None or theirs is None or mine.shape != theirs.shape:
                raise InputError(
                    f"Training.layers: {layer.name}.{own} cannot be tied to {target}: both must "
                    "be trained parameters of one shape"
                )
            if mine.decayed != theirs.decayed:
                raise InputError(
                    f"Training.optimizer: decays {target} and {layer.name}.{own} differently, "
                    "though they are tied; let `decays` treat them alike"
                )
