"""A survey of the model before anything is trained: sizes, and what passes between layers.

Static shapes given to the pipeline spare it a shape-inference run, which would call the user's
layers an extra time. Each layer is built on the meta device, where nothing is allocated or
computed; one that cannot live there is built and run once on the CPU, and dropped again.
"""

from __future__ import annotations

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

    @property
    def nbytes(self) -> int:
        """Size of one micro-batch's tensor."""
        return self.shape.numel() * self.dtype.itemsize

    def meta(self) -> Tensor:
        """A tensor without data, for the pipeline's static shapes."""
        grad = self.dtype.is_floating_point
        return torch.empty(self.shape, dtype=self.dtype, device="meta", requires_grad=grad)


@dataclass(frozen=True)
class Survey:
    """The model's outline."""

    profile: Profile
    boundaries: tuple[Boundary, ...]
    """The input of layer 0, then the output of every layer."""


def survey(training: Training, seed: int, sample: Tensor) -> Survey:
    """Look at every layer once.

    Args:
        training: The user's.
        seed: The job's; layers are built with it.
        sample: The input of one micro-batch.

    Raises:
        InputError: a layer does not return one floating-point tensor, or has buffers that it
            changes, or mixes dtypes.
        UserCodeFailed: a layer cannot be built, or run on what the layer before returns.
    """
    boundaries = [Boundary(sample.shape, sample.dtype)]
    profiles = []
    for index, layer in enumerate(training.layers):
        state, boundary = _look(training, index, seed, boundaries[-1])
        _refuse_running_statistics(layer.name, state.module)
        profiles.append(
            LayerProfile(
                name=layer.name,
                param_bytes=state.numel * state.dtype.itemsize,
                state_bytes=state.nbytes,
                activation_bytes=boundary.nbytes,
            )
        )
        boundaries.append(boundary)
    profile = Profile(
        layers=tuple(profiles),
        num_micro_batches=training.num_micro_batches,
        micro_batch_samples=training.micro_batch,
        total_steps=training.steps,
    )
    return Survey(profile, tuple(boundaries))


def _look(
    training: Training, index: int, seed: int, before: Boundary
) -> tuple[LayerState, Boundary]:
    meta = torch.device("meta")
    try:
        with meta:
            module = training.layers[index].build()
        state = LayerState(index, module, training.optimizer, meta)
        with torch.no_grad():
            return state, _boundary(training.layers[index].name, module(before.meta()))
    except Exception:
        pass
    name = training.layers[index].name
    cpu = torch.device("cpu")
    with user_code(f"build() of layer {name!r}"):
        state = build_layer(training, index, seed, cpu)
    value = torch.zeros(before.shape, dtype=before.dtype)
    with user_code(f"layer {name!r}"), torch.random.fork_rng(devices=[]), torch.no_grad():
        return state, _boundary(name, state.module(value))


def _boundary(name: str, output: object) -> Boundary:
    if not isinstance(output, Tensor) or not output.dtype.is_floating_point:
        got = str(output.dtype) if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"Training.layers: {name!r} returned {got}; forward must return one "
            "floating-point tensor"
        )
    return Boundary(output.shape, output.dtype)


def _refuse_running_statistics(name: str, module: nn.Module) -> None:
    for part in module.modules():
        if getattr(part, "track_running_stats", False):
            raise InputError(
                f"Training.layers: {name!r} holds {type(part).__name__}, whose running "
                "statistics depend on who ran which micro-batch; use GroupNorm or LayerNorm, "
                "or track_running_stats=False"
            )
