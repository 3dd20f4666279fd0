"""The agent: supervisor, worker, migration, and the training API for users.

A user imports from here::

    from parcae_agent import AdamW, Layer, Training

The names load torch only when they are used, so that the supervisor stays light.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parcae_agent.optimizers import SGD, Adam, AdamW, Optimizer, matrices_only
    from parcae_agent.schedules import warmup, warmup_cosine
    from parcae_agent.training import Layer, Training

# Before torch is loaded: every lost peer would be a page of C++ stack traces.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Layer",
    "Optimizer",
    "Training",
    "matrices_only",
    "warmup",
    "warmup_cosine",
]

_HOMES = {
    "SGD": "optimizers",
    "Adam": "optimizers",
    "AdamW": "optimizers",
    "Optimizer": "optimizers",
    "matrices_only": "optimizers",
    "Layer": "training",
    "Training": "training",
    "warmup": "schedules",
    "warmup_cosine": "schedules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
