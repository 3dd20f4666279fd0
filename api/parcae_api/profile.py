"""Profile: what the planner knows of the model and the machines, measured by the workers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from parcae_api.model import Contract

Bytes = Annotated[int, Field(ge=0, le=10**15)]


class LayerProfile(Contract):
    """One layer, per micro-batch."""

    name: str
    param_bytes: Bytes
    state_bytes: Bytes
    """Parameters and optimizer state: what moves when the layer moves."""
    activation_bytes: Bytes
    """Its output, per micro-batch: what a stage boundary behind it sends."""
    seconds: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = None
    """Forward and backward of one micro-batch; None until measured."""


class Profile(Contract):
    """``profile``."""

    layers: Annotated[tuple[LayerProfile, ...], Field(min_length=1, max_length=4096)]
    num_micro_batches: Annotated[int, Field(ge=1, le=1_000_000)]
    """Per global batch: the most pipelines a layout can have."""
    micro_batch_samples: Annotated[int, Field(ge=1, le=1_000_000_000)]
    total_steps: Annotated[int, Field(ge=0)]
    bandwidth_bytes_per_s: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    regroup_seconds: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None

    @property
    def global_batch_samples(self) -> int:
        """Samples of one step."""
        return self.num_micro_batches * self.micro_batch_samples
