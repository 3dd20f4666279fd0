"""Profiles by hand: every number of a layer named, the others harmless."""

from __future__ import annotations

from collections.abc import Sequence

from parcae_api.plan import Configuration, Layout
from parcae_api.profile import LayerProfile, Profile
from parcae_optimizer.partition import even_split


def make_profile(
    seconds: Sequence[float | None],
    *,
    param_bytes: Sequence[int] | int = 0,
    state_bytes: Sequence[int] | int = 0,
    activation_bytes: Sequence[int] | int = 0,
    micro_batches: int = 8,
    micro_batch_samples: int = 4,
    bandwidth: float | None = 1e9,
) -> Profile:
    """One layer per entry of ``seconds``; a single number of bytes holds for all layers."""

    def each(value: Sequence[int] | int) -> Sequence[int]:
        return [value] * len(seconds) if isinstance(value, int) else value

    layers = zip(seconds, each(param_bytes), each(state_bytes), each(activation_bytes), strict=True)
    return Profile(
        layers=tuple(
            LayerProfile(
                name=f"layer{index}",
                param_bytes=params,
                state_bytes=state,
                activation_bytes=activation,
                seconds=second,
            )
            for index, (second, params, state, activation) in enumerate(layers)
        ),
        num_micro_batches=micro_batches,
        micro_batch_samples=micro_batch_samples,
        total_steps=100,
        bandwidth_bytes_per_s=bandwidth,
    )


def make_layout(data: int, boundaries: Sequence[int], *, micro_batches: int = 8) -> Layout:
    return Layout(
        configuration=Configuration(data=data, pipeline=len(boundaries) - 1),
        boundaries=tuple(boundaries),
        micro_batches=even_split(micro_batches, data),
    )
