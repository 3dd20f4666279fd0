"""The job of the scenario: the example's GPT on data of its own, at a pace that a file sets.

The pace and the scripted crash change nothing of what is computed: the undisturbed run, without
their folder, must come to the same bits.
"""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import torch
from gpt import gpt
from torch import Tensor
from torch.utils.data import TensorDataset

from parcae_agent import Training

_STAGE = os.environ.get("E2E_STAGE", "")
"""A folder that all pods share; without it, full speed and no accidents."""


def train(**options: int) -> Training:
    """The example's model on noise that has a pattern to learn."""
    training: Training = gpt(**options)
    draw = torch.Generator().manual_seed(7)
    text = torch.randint(0, 256, (512, 65), generator=draw, dtype=torch.uint8).cumsum(1) // 7 % 256
    data = TensorDataset(text[:, :-1].to(torch.uint8), text[:, 1:].to(torch.uint8))
    whole = training.loss

    def loss(out: Tensor, to: Tensor) -> Tensor:
        _happen()
        return whole(out, to)

    return dataclasses.replace(training, data=data, loss=loss)


def _happen() -> None:
    if not _STAGE:
        return
    crash = Path(_STAGE, "crash")
    try:
        crash.unlink()
    except FileNotFoundError:
        time.sleep(_pace_s())
    else:
        raise RuntimeError("the scenario's crash")


def _pace_s() -> float:
    """Seconds that a micro-batch takes longer than it must."""
    try:
        return float(Path(_STAGE, "pace").read_text())
    except (OSError, ValueError):
        return 0.0
