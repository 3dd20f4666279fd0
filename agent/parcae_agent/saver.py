"""Writes checkpoints beside training: copies are taken at a step's end, files written later."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from parcae_agent import checkpoint
from parcae_agent.memory import Memory
from parcae_agent.metrics.meter import Meter
from parcae_agent.metrics.page import Page
from parcae_api.errors import TrainingFailed

_log = logging.getLogger(__name__)

_LOOK_S = 5.0


class Complete(NamedTuple):
    """A checkpoint that has every layer."""

    step: int
    at_unix_s: float


class Saver:
    """Checkpoints of one worker's layers."""

    def __init__(
        self, folder: Path | None, every_steps: int, num_layers: int, meter: Meter | None = None
    ) -> None:
        """With no folder nothing is ever written; ``num_layers`` is the whole model's.

        ``meter`` is told from the thread that writes.
        """
        self._meter = meter or Meter(Page.of(None))
        self._folder = folder
        self._every_steps = every_steps
        self._num_layers = num_layers
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="parcae-saver")
        self._writing: Future[None] | None = None
        self._looks_again_s = 0.0
        """When the folder is worth another look, by ``time.monotonic``: others write, too."""
        self._newest: Complete | None = None

    def after_step(self, memory: Memory) -> None:
        """Write the state in the background when its step is due.

        A write that still runs when the next is due makes that one wait for another turn.
        """
        if self._folder is None or memory.applied % self._every_steps:
            return
        if self._writing is not None and not self._writing.done():
            return
        states = checkpoint.snapshot(list(memory.layers.values()))
        self._writing = self._executor.submit(self._write, self._folder, memory.applied, states)

    def save_now(self, memory: Memory) -> None:
        """Write the state and return when it is on disk.

        Raises:
            TrainingFailed: it could not be written.
        """
        if self._folder is None:
            return
        states = checkpoint.snapshot(list(memory.layers.values()))
        write = self._executor.submit(self._put, self._folder, memory.applied, states)
        try:
            write.result()  # on the one thread that writes: after the write that may be running
        except OSError as error:
            raise TrainingFailed(
                f"the state of step {memory.applied} cannot be written to {self._folder}: "
                f"{error.strerror or error}; free space or name another folder"
            ) from error

    def close(self) -> None:
        """Finish the write that runs."""
        self._executor.shutdown(wait=True)

    def newest(self) -> Complete | None:
        """The newest complete checkpoint, as of a few seconds ago; looks in the background.

        Only for the worker that reports: all others need not load the folder.
        """
        now = time.monotonic()
        if self._folder is not None and now >= self._looks_again_s:
            self._looks_again_s = now + _LOOK_S
            self._executor.submit(self._look, self._folder)
        return self._newest

    def _look(self, folder: Path) -> None:
        try:
            steps = checkpoint.complete_steps(folder, self._num_layers)
            if steps and (self._newest is None or steps[-1] != self._newest.step):
                at_unix_s = checkpoint.completed_unix_s(folder, steps[-1], self._num_layers)
                self._newest = Complete(steps[-1], at_unix_s)
        except OSError as error:
            _log.info("the newest checkpoint cannot be looked for: %s", error)

    def _put(self, folder: Path, step: int, states: checkpoint.States) -> None:
        begun_s = time.perf_counter()
        try:
            checkpoint.write(folder, step, states)
        except BaseException:
            self._meter.not_saved()
            raise
        num_bytes = sum(flat.nbytes for flat in states.values())
        self._meter.saved(step, num_bytes, time.perf_counter() - begun_s)

    def _write(self, folder: Path, step: int, states: checkpoint.States) -> None:
        try:
            self._put(folder, step, states)
            checkpoint.prune(folder, self._num_layers)
        except Exception as error:
            # Training is worth more than a checkpoint: the last complete one stays.
            _log.warning("checkpoint of step %d was not written: %s", step, error)
