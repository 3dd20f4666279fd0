"""How long one step of a layout takes, predicted from measured per-layer times and sizes.

A pipeline of P stages that runs m micro-batches takes (m + P - 1) turns of its slowest stage
(1F1B and GPipe alike); the step waits for the pipeline with the most micro-batches, then for
the all-reduce of its largest stage, 2·(D-1)/D of its bytes over one link.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def step_seconds(layout: Layout, profile: Profile, seconds: Sequence[float]) -> float:
    """Predicted time of one step.

    Args:
        layout: The layout.
        profile: Sizes and link bandwidth.
        seconds: Per layer and micro-batch, as from ``layer_seconds``.
    """
    d, p = layout.configuration.data, layout.configuration.pipeline
    link = profile.bandwidth_bytes_per_s or DEFAULT_BANDWIDTH_BYTES_PER_S
    slowest = 0.0
    largest_bytes = 0
    for stage in range(p):
        layers = layout.layers(stage)
        sends = profile.layers[layers.stop - 1].activation_bytes if stage < p - 1 else 0
        turn = sum(seconds[k] for k in layers) + 2 * sends / link
        slowest = max(slowest, turn)
        largest_bytes = max(largest_bytes, sum(profile.layers[k].param_bytes for k in layers))
    all_reduce = 2 * (d - 1) / d * largest_bytes / link
    return (max(layout.micro_batches) + p - 1) * slowest + all_reduce


def peak_bytes(layout: Layout, profile: Profile, stage: int) -> int:
    """Memory of a worker: state, a gradient, and the activations in flight.

    A stage holds activations of as many micro-batches as there are stages from it to the end
    (1F1B), at least two copies each (inputs and what autograd keeps).
    """
    in_flight = min(max(layout.micro_batches), layout.configuration.pipeline - stage)
    layers = [profile.layers[k] for k in layout.layers(stage)]
    return sum(layer_bytes(layer, in_flight) for layer in layers)


def layer_bytes(layer: LayerProfile, in_flight: int = 1) -> int:
    """What one layer adds to its worker's memory, with that many micro-batches in flight."""
    return layer.state_bytes + 2 * layer.param_bytes + 2 * layer.activation_bytes * in_flight
