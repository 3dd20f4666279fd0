"""Membership: an agent's own entry on the board, alive as long as its lease."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from parcae_api.model import Contract
from parcae_api.plan import WorkerId


class AgentState(StrEnum):
    """How far an agent is."""

    STARTING = "starting"
    """On the board; its workers still import and load the user's code."""
    STANDBY = "standby"
    """Ready, outside the grid."""
    TRAINING = "training"
    LEAVING = "leaving"
    """Has a notice; takes part until its state is out."""


class Notice(Contract):
    """An early signal that an instance goes away."""

    deadline_unix_s: float
    source: Annotated[str, Field(max_length=64)]


class Hint(Contract):
    """A sign that an instance may go away, and may stay: for the forecast, not for the plan."""

    source: Annotated[str, Field(max_length=64)]
    since_unix_s: float
    deadline_unix_s: float | None = None
    """When it would go, where anybody says so."""


class Holding(Contract):
    """The state a worker holds: layers ``first`` … ``last``-1 as of ``step`` committed steps."""

    revision: int
    first: int
    last: int
    step: int

    @property
    def layers(self) -> range:
        """Layer indices held."""
        return range(self.first, self.last)


class WorkerInfo(Contract):
    """One training process of an agent."""

    id: WorkerId
    device: str = "cpu"
    memory_bytes: int | None = None
    """Memory of its device, None where that is not known."""
    pid: int | None = None
    ready: bool = False
    revision: int | None = None
    """The epoch it trains in, None outside the grid."""
    idle_revision: int = 0
    """The newest plan that it has nothing (more) to do for."""
    broken_revision: int = 0
    """The newest revision that could not form or broke under it."""
    holding: Holding | None = None
    saved: Holding | None = None
    """What it has written for good, at a pause or at the end."""


class Membership(Contract):
    """``agents/<incarnation>``."""

    incarnation: str
    pod: str
    node: str
    node_uid: str
    address: str
    """Where other workers reach this agent's workers."""
    state: AgentState
    workers: tuple[WorkerInfo, ...]
    notice: Notice | None = None
    hint: Hint | None = None
    """From its cloud's metadata; withdrawn when the cloud withdraws it."""
    pid: int | None = None
    on_board_since_unix_s: float | None = None
    """When it came to the board, or last came back to one that had lost it; by its own clock."""
