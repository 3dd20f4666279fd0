"""The fake cloud: plays a recording of spot instances in scaled time.

Instances join; before they go, a notice goes out as early as the recording says; some go without
one when asked to. It calls a ``Nodes`` and knows nothing of agents or training.
"""

from __future__ import annotations

import heapq
import math
import random
import threading
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from parcae_traces import Change, Trace


class Nodes(Protocol):
    """What instances come to and go from."""

    def node_up(self, node: str) -> None:
        """An instance has joined."""
        ...

    def node_noticed(self, node: str, deadline_unix_s: float) -> None:
        """It will be gone at the deadline."""
        ...

    def node_down(self, node: str) -> None:
        """It is gone, with everything on it."""
        ...


class _Kind(IntEnum):
    """At one time: losses first, then joins, as in the recording."""

    DOWN = 0
    UP = 1
    NOTICE = 2


@dataclass(frozen=True, order=True)
class Cue:
    """One thing to do, in real seconds from the start."""

    at_s: float
    kind: _Kind
    node: str
    deadline_s: float = 0.0
    """Of a notice: when the instance goes, in real seconds from the start."""


def script(trace: Trace, *, speedup: float, unnoticed: float, seed: int) -> list[Cue]:
    """The cues of a trace, in order.

    Args:
        trace: The recording.
        speedup: Recorded seconds per real second.
        unnoticed: Share of removals, 0 to 1, that come without a notice.
        seed: Draws which ones.
    """
    draw = random.Random(seed)
    cues: list[Cue] = []
    joined_s: dict[int, float] = {}
    for event in trace.events():
        node = f"spot-{event.instance}"
        at_s = event.time_s / speedup
        if event.change is Change.JOIN:
            joined_s[event.instance] = event.time_s
            cues.append(Cue(at_s, _Kind.UP, node))
            continue
        cues.append(Cue(at_s, _Kind.DOWN, node))
        if draw.random() < unnoticed or event.notice_s <= 0:
            continue
        noticed_s = max(joined_s[event.instance], event.time_s - event.notice_s) / speedup
        cues.append(Cue(noticed_s, _Kind.NOTICE, node, at_s))
    return sorted(cues)


class FakeCloud:
    """Plays a script on a thread of its own."""

    def __init__(self, cues: list[Cue], duration_s: float, nodes: Nodes) -> None:
        self._cues = list(cues)
        heapq.heapify(self._cues)
        self._duration_s = duration_s
        self._nodes = nodes
        self._stop = threading.Event()
        self._started_s = 0.0
        self.is_over = threading.Event()
        """Set when the recording has been played to its end."""
        self.error: Exception | None = None
        """What ended it before that."""
        self._thread = threading.Thread(target=self._run, name="parcae-cloud", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._started_s = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        """Play nothing more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def elapsed_s(self) -> float:
        """Real seconds since the start."""
        return time.monotonic() - self._started_s

    def _run(self) -> None:
        try:
            self._play()
        except Exception as error:
            self.error = error

    def _play(self) -> None:
        while self._cues:
            if self._stop.wait(max(0.0, self._cues[0].at_s - self.elapsed_s)):
                return
            self._do(heapq.heappop(self._cues))
        rest_s = self._duration_s - self.elapsed_s
        if not self._stop.wait(max(0.0, rest_s) if math.isfinite(rest_s) else None):
            self.is_over.set()

    def _do(self, cue: Cue) -> None:
        match cue.kind:
            case _Kind.UP:
                self._nodes.node_up(cue.node)
            case _Kind.DOWN:
                self._nodes.node_down(cue.node)
            case _Kind.NOTICE:
                left_s = cue.deadline_s - self.elapsed_s
                self._nodes.node_noticed(cue.node, time.time() + left_s)
