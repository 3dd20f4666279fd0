"""What the controller wants done. Each is carried out by the edge, and safe to want again."""

from __future__ import annotations

from dataclasses import dataclass

from parcae_api.job_status import JobStatus
from parcae_api.plan import Plan
from parcae_api.planning import PlanAnswer


@dataclass(frozen=True)
class CreatePods:
    """Ask for that many pods more."""

    count: int


@dataclass(frozen=True)
class DeletePods:
    """Give these pods back: each gets a notice, hands its state over, and ends."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class PublishPlan:
    """Publish a plan in place of the current one (compare-and-swap)."""

    plan: Plan
    answer: PlanAnswer | None = None
    """What the planner said of it; None where nobody was asked."""


@dataclass(frozen=True)
class Hold:
    """Change nothing yet, though something better is possible."""

    why: str
    foregone_samples_per_second: float
    """What would be trained more."""
    until_unix_s: float
    """When to look again at the latest."""


@dataclass(frozen=True)
class Complete:
    """All steps are committed, or the job was told to end."""

    step: int
    """Committed steps."""
    message: str
    saved: bool
    """Living agents say that the state after that step is saved whole."""


@dataclass(frozen=True)
class Fail:
    """The user's code failed, or the job can never run: it ends and is not retried."""

    message: str
    traceback: str


@dataclass(frozen=True)
class SetStatus:
    """Write the status if it differs."""

    status: JobStatus


Action = CreatePods | DeletePods | PublishPlan | Hold | Complete | Fail | SetStatus
