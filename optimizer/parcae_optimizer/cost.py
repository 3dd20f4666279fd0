"""How long one step of a layout takes, predicted from measured per-layer times and sizes.

A pipeline of P stages that runs m micro-batches takes (m + P - 1) turns of its slowest stage
(1F1B and GPipe alike); the step waits for the pipeline with the most micro-batches, then for
the all-reduce of its largest stage, 2·(D-1)/D of its bytes over one link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parcae_api.plan import Layout
from parcae_api.profile import LayerProfile, Profile

DEFAULT_BANDWIDTH_BYTES_PER_S = 1e9
_UNMEASURED_BYTES_PER_S = 2e9
"""Before anything is measured a layer is taken to cost as much as touching its bytes."""


def layer_seconds(profile: Profile) -> list[float]:
    """Forward and backward of each layer for one micro-batch, measured or guessed from sizes."""
    if is_measured(profile):
        return [layer.seconds or 0.0 for layer in profile.layers]
    return [_guess(layer) for layer in profile.layers]


def is_measured(profile: Profile) -> bool:
    """Whether the time of every layer is known; else speeds only rank layouts."""
    return all(layer.seconds is not None for layer in profile.layers)


def _guess(layer: LayerProfile) -> float:
    return (layer.param_bytes + layer.activation_bytes) / _UNMEASURED_BYTES_PER_S


class Costs:
    """What steps of a profile's layouts take, in time and memory.

    Thousands of layouts share a few hundred cuts: of each cut is kept what does not depend on the
    number of replicas.
    """

    def __init__(self, profile: Profile) -> None:
        self._link = profile.bandwidth_bytes_per_s or DEFAULT_BANDWIDTH_BYTES_PER_S
        self._seconds = np.array(layer_seconds(profile))
        # Not as whole numbers: the bytes of all layers may add up to more than these hold.
        self._params = np.array([float(layer.param_bytes) for layer in profile.layers])
        self._activations = np.array([float(layer.activation_bytes) for layer in profile.layers])
        self._fixed = np.array([float(layer_bytes(layer, 0)) for layer in profile.layers])
        self._cuts: dict[tuple[int, ...], _Cut] = {}

    def step_seconds(self, layout: Layout) -> float:
        """Predicted time of one step."""
        d, p = layout.configuration.data, layout.configuration.pipeline
        cut = self._cut(layout.boundaries)
        all_reduce = 2 * (d - 1) / d * cut.largest_bytes / self._link
        return (max(layout.micro_batches) + p - 1) * cut.slowest_seconds + all_reduce

    def peak_bytes(self, layout: Layout) -> NDArray[np.float64]:
        """[P] memory of a worker: state, a gradient, and the activations in flight.

        A stage holds activations of as many micro-batches as there are stages from it to the end
        (1F1B), at least two copies each (inputs and what autograd keeps).
        """
        cut, p = self._cut(layout.boundaries), layout.configuration.pipeline
        in_flight = np.minimum(max(layout.micro_batches), np.arange(p, 0, -1))
        peak: NDArray[np.float64] = cut.fixed_bytes + 2 * cut.activation_bytes * in_flight
        return peak

    def _cut(self, boundaries: tuple[int, ...]) -> _Cut:
        if boundaries not in self._cuts:
            begins, last = np.array(boundaries[:-1]), np.array(boundaries[1:]) - 1
            sends = self._activations[last]
            sends[-1] = 0
            turns = np.add.reduceat(self._seconds, begins) + 2 * sends / self._link
            self._cuts[boundaries] = _Cut(
                slowest_seconds=float(turns.max()),
                largest_bytes=float(np.add.reduceat(self._params, begins).max()),
                fixed_bytes=np.add.reduceat(self._fixed, begins),
                activation_bytes=np.add.reduceat(self._activations, begins),
            )
        return self._cuts[boundaries]


@dataclass(frozen=True, slots=True)
class _Cut:
    """Of all stages between given boundaries."""

    slowest_seconds: float
    """The longest turn of a stage: its layers, and what it sends on."""
    largest_bytes: float
    """The most parameters of a stage."""
    fixed_bytes: NDArray[np.float64]
    """[P] state and a gradient."""
    activation_bytes: NDArray[np.float64]
    """[P] of one micro-batch."""


def layer_bytes(layer: LayerProfile, in_flight: int = 1) -> int:
    """What one layer adds to its worker's memory, with that many micro-batches in flight."""
    return layer.state_bytes + 2 * layer.param_bytes + 2 * layer.activation_bytes * in_flight
