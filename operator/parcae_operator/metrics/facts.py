"""What is known at the moment of a scrape. Gathered at the edge; nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from parcae_api.job import Instances
from parcae_api.job_status import JobStatus
from parcae_api.planning import PlanAnswer


@dataclass(frozen=True, kw_only=True)
class JobFacts:
    """One job."""

    namespace: str
    name: str
    now: JobStatus
    """As of the last look: for what may rise and fall."""
    written: JobStatus
    """As the API server has it: for what only grows. A counter that ran ahead of what survives
    would go back when the operator is replaced, and Prometheus would take all of it as new."""
    instances: Instances | None = None
    """As the user wants it; None while no spec is known that works."""
    answer: PlanAnswer | None = None
    """The planner's newest; None before the first question."""
    checkpoint_unix_s: float | None = None
    """When the newest complete checkpoint was written; None where none is known of."""


class NodeGroup(NamedTuple):
    """Nodes that are counted together."""

    zone: str
    spot: bool
    state: str
    """``healthy``, ``suspect``, ``hinted`` or ``leaving``."""


class FactSource(Protocol):
    """Where facts come from. Called from threads of the server's; nothing here may wait."""

    def jobs(self) -> Sequence[Callable[[], JobFacts | None]]:
        """One look per job; None: another operator tells of it."""
        ...

    def num_jobs(self) -> int:
        """Jobs that exist."""
        ...

    def nodes(self) -> Mapping[NodeGroup, int]:
        """Nodes of the cluster."""
        ...

    def board_up(self) -> bool | None:
        """Whether etcd answers; None while that is not known."""
        ...

    def planner_up(self) -> bool | None:
        """Whether the planner answers; None where there is none, or that is not known."""
        ...

    def api_server_up(self) -> bool | None:
        """Whether the API server answers; None while that is not known."""
        ...
