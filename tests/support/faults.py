"""Failures as a script: what happens to one worker, at which point, in which step.

::

    Faults().kill(at="reduce", step=6)
    Faults().fail_with(RuntimeError("torn"), at="voted", step=6).kill(at="form", nth=2)
    Faults().kill(at="agreed", once=tmp_path / "armed")

A script is a worker's probe (``parcae_agent.probe``). It is pickled into the worker and counts
there on its own.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parcae_agent.probe import POINTS


@dataclass
class _Fault:
    at: str
    step: int | None
    nth: int
    once: Path | None
    act: Callable[[], None]
    seen: int = 0

    def meet(self, point: str, step: int) -> None:
        if point != self.at or (self.step is not None and step != self.step):
            return
        if self.once is not None and not self.once.exists():
            return
        self.seen += 1
        if self.seen == self.nth:
            self.act()


@dataclass(frozen=True)
class _Signal:
    number: signal.Signals

    def __call__(self) -> None:
        os.kill(os.getpid(), self.number)


@dataclass(frozen=True)
class _Raise:
    error: Exception

    def __call__(self) -> None:
        raise self.error


@dataclass(frozen=True)
class _Hold:
    """Say that the point is reached, and wait there."""

    reached: Path
    until: Path

    def __call__(self) -> None:
        self.reached.touch()
        while not self.until.exists():
            time.sleep(0.002)


@dataclass
class Faults:
    """Every method adds one failure: at the ``nth`` time that point (and step) is met, of those
    times at which the file ``once`` exists, if one is given."""

    script: list[_Fault] = field(default_factory=list)

    def kill(self, **when: Any) -> Faults:
        """SIGKILL the worker."""
        return self._add(_Signal(signal.SIGKILL), **when)

    def stop(self, **when: Any) -> Faults:
        """SIGSTOP it: it stays, and says nothing."""
        return self._add(_Signal(signal.SIGSTOP), **when)

    def fail_with(self, error: Exception, **when: Any) -> Faults:
        """Raise there, as a torn connection would."""
        return self._add(_Raise(error), **when)

    def hold(self, reached: Path, until: Path, **when: Any) -> Faults:
        """Touch ``reached`` and wait there until ``until`` exists."""
        return self._add(_Hold(reached, until), **when)

    def __call__(self, point: str, step: int) -> None:
        for fault in self.script:
            fault.meet(point, step)

    def _add(
        self,
        act: Callable[[], None],
        *,
        at: str,
        step: int | None = None,
        nth: int = 1,
        once: Path | None = None,
    ) -> Faults:
        assert at in POINTS, f"{at} is no point; there are {POINTS}"
        return Faults([*self.script, _Fault(at, step, nth, once, act)])
