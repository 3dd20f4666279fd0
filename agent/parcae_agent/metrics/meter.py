"""Puts a worker's numbers on its page. A step's cost is some thirty stores into memory."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from parcae_agent.metrics.catalog import STEP_BUCKETS_S
from parcae_agent.metrics.page import FIRST_BUCKET, Page, Slot


@dataclass(slots=True)
class StepParts:
    """Where the time of a step went on this worker, in seconds."""

    data: float = 0.0
    compute: float = 0.0
    """Forward and backward of its own layers. On a GPU the time to launch them: what they take
    shows where the host next waits for the device."""
    pipeline: float = 0.0
    """The rest of the schedule: waiting for neighbours."""
    reduce: float = 0.0
    vote: float = 0.0
    apply: float = 0.0

    @property
    def total(self) -> float:
        """All of them."""
        return self.data + self.compute + self.pipeline + self.reduce + self.vote + self.apply


class Meter:
    """One worker's. Steps and plans are written from its main thread, checkpoints from one other.

    Args:
        page: Where to.
    """

    def __init__(self, page: Page) -> None:
        self._values = page.values

    def stepped(
        self,
        step: int,
        *,
        seconds: float,
        parts: StepParts,
        samples: int,
        tokens: int,
        loss: float,
        norm: float,
    ) -> None:
        """A step was committed; ``step`` are all that are by now."""
        values = self._values
        values[Slot.STEP] = step
        values[Slot.LOSS] = loss
        values[Slot.NORM] = norm
        values[Slot.STEPS] += 1
        values[Slot.SAMPLES] += samples
        values[Slot.TOKENS] += tokens
        values[Slot.STEP_SECONDS] += seconds
        values[FIRST_BUCKET + bisect_left(STEP_BUCKETS_S, seconds)] += 1
        values[Slot.DATA_SECONDS] += parts.data
        values[Slot.COMPUTE_SECONDS] += parts.compute
        values[Slot.PIPELINE_SECONDS] += parts.pipeline
        values[Slot.REDUCE_SECONDS] += parts.reduce
        values[Slot.VOTE_SECONDS] += parts.vote
        values[Slot.APPLY_SECONDS] += parts.apply
        values[Slot.OTHER_SECONDS] += max(0.0, seconds - parts.total)

    def moved(self, *, sent: int, received: int) -> None:
        """State went to and came from other workers; in bytes."""
        self._values[Slot.BYTES_SENT] += sent
        self._values[Slot.BYTES_RECEIVED] += received

    def formed(
        self, revision: int, cell: tuple[int, int] | None, seconds: float, pause_s: float | None
    ) -> None:
        """A plan has formed; without a cell this worker's part in it is over.

        Args:
            revision: The plan's.
            cell: Replica and stage.
            seconds: What forming took.
            pause_s: Since its last committed step; None where it has none.
        """
        values = self._values
        values[Slot.FORMED] += 1
        values[Slot.REGROUP_SECONDS] += seconds
        if cell is None:
            return
        values[Slot.REPLICA], values[Slot.STAGE] = cell
        values[Slot.REVISION] = revision
        if pause_s is not None:
            values[Slot.PAUSES] += 1
            values[Slot.PAUSE_SECONDS] += pause_s

    def holds(self, *, step: int, layers: int, state_bytes: int) -> None:
        """What the worker holds now."""
        self._values[Slot.STEP] = step
        self._values[Slot.LAYERS] = layers
        self._values[Slot.STATE_BYTES] = state_bytes

    def broke(self) -> None:
        """A plan could not form, or broke."""
        self._values[Slot.BROKEN] += 1

    def left(self) -> None:
        """The worker is outside the grid."""
        values = self._values
        values[Slot.REVISION] = 0
        values[Slot.REPLICA] = values[Slot.STAGE] = math.nan

    def device(self, *, allocated: int, reserved: int) -> None:
        """Memory of the device, in bytes."""
        self._values[Slot.DEVICE_ALLOCATED] = allocated
        self._values[Slot.DEVICE_RESERVED] = reserved

    def saved(self, step: int, num_bytes: int, seconds: float) -> None:
        """This worker's share of a checkpoint is written."""
        values = self._values
        values[Slot.CHECKPOINTS] += 1
        values[Slot.CHECKPOINT_SECONDS] += seconds
        values[Slot.CHECKPOINT_BYTES] += num_bytes
        values[Slot.CHECKPOINT_STEP] = step

    def not_saved(self) -> None:
        """It could not be written."""
        self._values[Slot.CHECKPOINT_FAILURES] += 1
