"""Which samples a micro-batch holds: a pure function of (seed, step, micro-batch).

Samples form one endless stream: epoch after epoch, each a fresh permutation of the data set.
Step ``s`` takes stream positions ``s·B … s·B+B-1`` and micro-batch ``m`` the ``m``-th run of
them, so that the committed step *is* the sample ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import default_collate

from parcae_agent.randomness import key
from parcae_api.errors import InputError


class Samples(Protocol):
    """A map-style data set: ``samples[i]`` is a pair (input, target) of tensors or numbers."""

    def __len__(self) -> int:
        """Number of samples."""
        ...

    def __getitem__(self, index: int, /) -> Any:
        """Sample ``index``, the same at every call."""
        ...


class SampleOrder:
    """Maps stream positions to indices of a data set of ``size`` samples."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._seed = seed
        self._permutation = lru_cache(maxsize=2)(self._draw)

    def _draw(self, epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(key("order", self._seed, epoch))
        return torch.randperm(self._size, generator=generator)

    def indices(self, positions: range) -> list[int]:
        """Data set indices at those stream positions; a range may cross epochs."""
        found: list[int] = []
        start = positions.start
        while start < positions.stop:
            epoch, offset = divmod(start, self._size)
            stop = min(positions.stop, (epoch + 1) * self._size)
            found += self._permutation(epoch)[offset : offset + stop - start].tolist()
            start = stop
        return found


class Batches:
    """Loads micro-batches by (step, micro-batch)."""

    def __init__(
        self,
        samples: Samples,
        *,
        seed: int,
        micro_batch: int,
        num_micro_batches: int,
        collate: Callable[[list[Any]], Any] = default_collate,
    ) -> None:
        self._samples = samples
        self._order = SampleOrder(len(samples), seed)
        self._micro_batch = micro_batch
        self._num_micro_batches = num_micro_batches
        self._collate = collate

    def positions(self, step: int, micro_batch: int) -> range:
        """Stream positions of a micro-batch."""
        start = (step * self._num_micro_batches + micro_batch) * self._micro_batch
        return range(start, start + self._micro_batch)

    def load(self, step: int, micro_batch: int) -> tuple[Tensor, Tensor]:
        """Input and target of a micro-batch, each with a leading axis of samples.

        Raises:
            InputError: that is not what the data set's samples make.
        """
        indices = self._order.indices(self.positions(step, micro_batch))
        batch = self._collate([self._samples[i] for i in indices])
        is_pair = isinstance(batch, tuple | list) and len(batch) == 2
        if not is_pair or not all(isinstance(part, Tensor) for part in batch):
            raise InputError(
                f"Training.data: samples collate to {_outline(batch)}; let every sample be a pair "
                "(input, target) of tensors or numbers, or give a collate that makes one"
            )
        return batch[0], batch[1]


def _outline(batch: object) -> str:
    if isinstance(batch, tuple | list):
        return f"{type(batch).__name__} of {', '.join(type(part).__name__ for part in batch)}"
    return type(batch).__name__
