"""Arrays that were worked out before, kept within so many bytes: the longest unused goes first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import ParamSpec

from cachetools import LRUCache, cached

from parcae_optimizer.rules import Floats

P = ParamSpec("P")

_BESIDE_BYTES = 500
"""Of an entry besides its numbers: the array's head, its key, its place in the cache."""


def kept(most_bytes: int) -> LRUCache[Hashable, Floats]:
    """A cache of arrays; not for several threads at once."""
    return LRUCache(most_bytes, getsizeof=lambda array: array.nbytes + _BESIDE_BYTES)


def keeping(most_bytes: int) -> Callable[[Callable[P, Floats]], Callable[P, Floats]]:
    """Like ``functools.lru_cache``, bounded by the memory of what is kept; for any thread.

    Two threads that ask the same at once may both work it out.
    """
    return cached(kept(most_bytes), lock=threading.Lock())
