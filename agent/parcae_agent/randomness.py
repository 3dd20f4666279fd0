"""Keyed randomness: every draw is a function of what it is for, never of who draws it.

Initial weights are keyed by (seed, layer); everything a layer draws in its forward, dropout
included, by (seed, step, micro-batch, layer). The layout does not enter, so it cannot show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def key(*parts: int | str) -> int:
    """A 63-bit seed from any parts, the same on every machine."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def mix(base: int, step: int, micro_batch: int, layer: int) -> int:
    """A 63-bit seed for one layer's forward, cheap enough for every call.

    The finalizer of SplitMix64 over the packed counters; ``base`` is a ``key``.
    """
    z = (base ^ (step << 34) ^ (micro_batch << 14) ^ layer) + 0x9E3779B97F4A7C15
    z &= 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (z ^ (z >> 31)) >> 1


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed what torch's own random functions draw from on the CPU and on ``device``."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Draw from ``seed`` inside, and leave the generators as they were."""
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        seed_generators(seed, device)
        yield
