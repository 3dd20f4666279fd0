"""Writes checkpoints beside training: copies are taken at a step's end, files written later."""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from parcae_agent import checkpoint
from parcae_agent.memory import Memory
from parcae_api.errors import TrainingFailed

_log = logging.getLogger(__name__)


class Saver:
    """Checkpoints of one worker's layers."""

    def __init__(self, folder: Path | None, every_steps: int, num_layers: int) -> None:
        """With no folder nothing is ever written; ``num_layers`` is the whole model's."""
        self._folder = folder
        self._every_steps = every_steps
        self._num_layers = num_layers
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="parcae-saver")
        self._writing: Future[None] | None = None

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
        write = self._executor.submit(checkpoint.write, self._folder, memory.applied, states)
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

    def _write(self, folder: Path, step: int, states: checkpoint.States) -> None:
        try:
            checkpoint.write(folder, step, states)
            checkpoint.prune(folder, self._num_layers)
        except Exception as error:
            # Training is worth more than a checkpoint: the last complete one stays.
            _log.warning("checkpoint of step %d was not written: %s", step, error)
