"""Profile: what the planner knows of the model and the machines, measured by the workers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from parcae_api.model import Contract


class LayerProfile(Contract):
    """One layer, per micro-batch."""

    name: str
    param_bytes: int
    state_bytes: int
    """Parameters and optimizer state: what moves when the layer moves."""
    activation_bytes: int
    """Its output, per micro-batch: what a stage boundary behind it sends."""
    seconds: float | None = None
    """Forward and backward of one micro-batch; None until measured."""


class Profile(Contract):
    """``profile``."""

    layers: Annotated[tuple[LayerProfile, ...], Field(min_length=1)]
    num_micro_batches: int
    """Per global batch: the most pipelines a layout can have."""
    micro_batch_samples: int
    total_steps: int
    bandwidth_bytes_per_s: float | None = None
    regroup_seconds: float | None = None

    @property
    def global_batch_samples(self) -> int:
        """Samples of one step."""
        return self.num_micro_batches * self.micro_batch_samples
