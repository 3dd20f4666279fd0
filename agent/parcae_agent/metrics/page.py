"""A page of numbers that a worker writes and its supervisor reads, in memory that both see.

No message, no lock, no system call: to write is to store eight bytes, and to read disturbs nobody.
The page outlives the worker, so that what it last did is told to the end. Each number is right
by itself; two of them may be a moment apart.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Sequence
from enum import IntEnum, auto
from typing import Self

from parcae_agent.metrics.catalog import STEP_BUCKETS_S


class Slot(IntEnum):
    """Where a number is. Those of a histogram's buckets follow."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return count

    REVISION = auto()
    REPLICA = auto()
    STAGE = auto()
    LAYERS = auto()
    STATE_BYTES = auto()
    DEVICE_ALLOCATED = auto()
    DEVICE_RESERVED = auto()
    STEP = auto()
    LOSS = auto()
    NORM = auto()
    STEPS = auto()
    SAMPLES = auto()
    TOKENS = auto()
    STEP_SECONDS = auto()
    DATA_SECONDS = auto()
    COMPUTE_SECONDS = auto()
    PIPELINE_SECONDS = auto()
    REDUCE_SECONDS = auto()
    VOTE_SECONDS = auto()
    APPLY_SECONDS = auto()
    OTHER_SECONDS = auto()
    FORMED = auto()
    BROKEN = auto()
    REGROUP_SECONDS = auto()
    PAUSES = auto()
    PAUSE_SECONDS = auto()
    BYTES_SENT = auto()
    BYTES_RECEIVED = auto()
    CHECKPOINTS = auto()
    CHECKPOINT_SECONDS = auto()
    CHECKPOINT_BYTES = auto()
    CHECKPOINT_FAILURES = auto()
    CHECKPOINT_STEP = auto()


FIRST_BUCKET = len(Slot)
NUM_BUCKETS = len(STEP_BUCKETS_S) + 1
_ABSENT = (
    Slot.REPLICA,
    Slot.STAGE,
    Slot.DEVICE_ALLOCATED,
    Slot.DEVICE_RESERVED,
    Slot.LOSS,
    Slot.NORM,
    Slot.CHECKPOINT_STEP,
)
"""Not a number until they are known."""
_BYTES = 8 * (FIRST_BUCKET + NUM_BUCKETS)


class Page:
    """One worker's."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor`` is of the memory; it may be closed afterwards."""
        self._memory = mmap.mmap(descriptor, _BYTES)
        self.values = memoryview(self._memory).cast("d")
        """By slot. Written by one thread each."""

    @classmethod
    def of(cls, descriptor: int | None) -> Self:
        """The page that a supervisor has made; one that nobody reads where there is none."""
        if descriptor is not None:
            return cls(descriptor)
        descriptor = new_page()
        try:
            return cls(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> Sequence[float]:
        """All numbers as they are now."""
        return self.values.tolist()


def new_page() -> int:
    """Make the memory of a page; a descriptor of it, for this process and those it starts."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("parcae-metrics")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, _BYTES)
    values = Page(descriptor).values
    for slot in _ABSENT:
        values[slot] = math.nan
    return descriptor
