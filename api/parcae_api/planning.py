"""What a planner is asked and what it answers; every planner, local or remote, speaks this."""

from __future__ import annotations

from typing import Annotated, Protocol

from pydantic import Field

from parcae_api.job import Pipeline
from parcae_api.model import Contract
from parcae_api.plan import Layout
from parcae_api.profile import Profile


class PlanRequest(Contract):
    """The question: which layout for these workers?"""

    profile: Profile
    num_workers: Annotated[int, Field(ge=0)]
    """Workers that stay."""
    pipeline: Pipeline = Pipeline()
    worker_memory_bytes: int | None = None
    """Of the smallest device, None where it is not known."""
    current: Layout | None = None


class PlanAnswer(Contract):
    """The answer."""

    layout: Layout | None
    """None when no layout is feasible."""
    samples_per_second: float = 0.0
    """Predicted, were nothing to change."""
    runner_up: str = ""
    """The next best configuration, empty when there is none."""
    why: str
    """One sentence a user understands."""


class Planner(Protocol):
    """Chooses layouts."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """Choose. Deterministic: the same question gets the same answer."""
        ...
