"""What the live view shows of one moment."""

from __future__ import annotations

from dataclasses import dataclass

from parcae_api.membership import Notice
from parcae_api.plan import Cell


@dataclass(frozen=True)
class NodeView:
    """One instance."""

    name: str
    state: str
    """``booting``, ``starting``, ``standby``, ``training``, ``leaving`` or ``gone``: its agent has
    left, and the instance is about to."""
    notice: Notice | None
    cell: Cell | None
    """Its place in the grid, None outside."""


@dataclass(frozen=True)
class Frame:
    """Everything shown at one moment."""

    title: str
    trace_seconds: float | None
    trace_duration_seconds: float | None
    nodes: tuple[NodeView, ...]
    configuration: str
    revision: int
    phase: str
    """What goes on: the reason of the job's condition, like ``Training`` or ``Paused``."""
    why: str
    step: int
    loss: float | None
    samples_per_second: float | None
