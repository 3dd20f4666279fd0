"""A model whose layers take the time of a device and none of the CPU's.

Eight workers of a real model on two cores take turns, so a grid of eight trains no faster than one
of four, and what a planner gains or loses drowns in that. Here a layer waits as long as a device
would compute, so every worker is as fast as if it had one of its own; all else (processes,
exchange, steps, changes of plan, moved state) is what a run does.
"""

import time
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from parcae_agent import AdamW, Layer, Training


class _OnDevice(torch.autograd.Function):
    """The identity. The backward takes twice the forward's time, as products of matrices do."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, seconds: float) -> Tensor:
        ctx.seconds = seconds
        time.sleep(seconds)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        time.sleep(2 * ctx.seconds)
        return gradients[0], None


class PacedBlock(nn.Module):
    """A linear layer with the pace of a larger one."""

    def __init__(self, width: int, seconds: float) -> None:
        super().__init__()
        self.linear, self.seconds = nn.Linear(width, width), seconds

    def forward(self, x: Tensor) -> Tensor:
        """Wait, then compute."""
        out: Tensor = x + functional.gelu(self.linear(_OnDevice.apply(x, self.seconds)))
        return out


def paced(
    layers: int = 6,
    width: int = 512,
    forward_ms: float = 8.0,
    batch: int = 32,
    micro_batch: int = 4,
    steps: int = 100_000,
) -> Training:
    """Layers of equal pace on random numbers; ``forward_ms`` for one layer and micro-batch."""
    drawn = torch.Generator().manual_seed(0)
    inputs = torch.randn(4096, width, generator=drawn)
    return Training(
        layers=[
            Layer(f"block{i}", lambda: PacedBlock(width, forward_ms / 1000)) for i in range(layers)
        ],
        loss=functional.mse_loss,
        data=torch.utils.data.TensorDataset(inputs, inputs.roll(1, 1)),
        optimizer=AdamW(lr=1e-3),
        steps=steps,
        global_batch=batch,
        micro_batch=micro_batch,
    )
