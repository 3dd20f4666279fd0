"""What a planner is asked and what it answers; every planner, local or remote, speaks this."""

from __future__ import annotations

from typing import Annotated, Protocol, Self

from pydantic import Field, StringConstraints, model_validator

from parcae_api.history import History
from parcae_api.job import HORIZON, LONGEST_HORIZON, Pipeline
from parcae_api.model import Contract
from parcae_api.plan import Layout
from parcae_api.profile import Profile

MOST_WORKERS = 1024
"""The most that one request may ask about: its work stays bounded."""
MOST_ROLLBACK_SECONDS = 1e9
ConfigurationText = Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,3}x[1-9]\d{0,3}$")]
"""D×P as text: 2x3."""


class PlanRequest(Contract):
    """The question: which layout for these workers?"""

    profile: Profile
    num_workers: Annotated[int, Field(ge=0, le=MOST_WORKERS)]
    """Workers that stay."""
    pipeline: Pipeline = Pipeline()
    worker_memory_bytes: Annotated[int, Field(ge=0)] | None = None
    """Of the smallest device, None where it is not known."""
    current: Layout | None = None
    replicas_left: tuple[Annotated[int, Field(ge=0)], ...] | None = None
    """Of every stage of ``current``: replicas whose workers stay. None takes them as all there."""
    capacity: Annotated[int, Field(ge=1, le=MOST_WORKERS)] | None = None
    """Workers that are asked for (``instances.max``); None takes what was seen."""
    history: History | None = None
    """How many there were, per interval; None where nothing was recorded."""
    likely_removals: Annotated[int, Field(ge=0, le=MOST_WORKERS)] = 0
    """Of these workers: on instances with a hint that they may go."""
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)] = HORIZON
    """Intervals to look ahead."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """Draws the forecast's sample paths."""
    rollback_seconds: Annotated[float, Field(ge=0, le=MOST_ROLLBACK_SECONDS)] = 0.0
    """Work that is lost when a stage has no replica left: about half a checkpoint interval."""
    step_seconds: dict[ConfigurationText, Annotated[float, Field(ge=1e-9, le=1e9)]] = {}
    """Measured steps by configuration, such as 2x3: they correct the predicted ones."""
    samples_per_second: dict[ConfigurationText, Annotated[float, Field(ge=0, le=1e12)]] = {}
    """A table of speeds instead of predictions; configurations that it lacks are not considered."""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.current is not None and self.current.num_layers != len(self.profile.layers):
            raise ValueError(
                f"current.boundaries end at layer {self.current.num_layers}, but profile.layers "
                f"has {len(self.profile.layers)}; give a layout of this model, or none"
            )
        if self.replicas_left is not None:
            _check_left(self.replicas_left, self.current, self.num_workers)
        elif self.current is not None:
            _check_all_left(self.current, self.num_workers)
        _check_capacity(self.capacity, self.num_workers)
        return self


def _check_all_left(current: Layout, num_workers: int) -> None:
    workers = current.configuration.workers
    if workers > num_workers:
        raise ValueError(
            f"current has {workers} workers, but num_workers is {num_workers}; give replicas_left"
        )


def _check_left(left: tuple[int, ...], current: Layout | None, num_workers: int) -> None:
    if current is None:
        raise ValueError("replicas_left is given without current; give both or none")
    if len(left) != current.configuration.pipeline:
        raise ValueError(
            f"replicas_left has {len(left)} stages, but current has "
            f"{current.configuration.pipeline}; give one number per stage"
        )
    if max(left) > current.configuration.data:
        raise ValueError(
            f"replicas_left says {max(left)}, but current has "
            f"{current.configuration.data} replicas; give at most that many"
        )
    if sum(left) > num_workers:
        raise ValueError(
            f"replicas_left counts {sum(left)} workers that stay, but num_workers is "
            f"{num_workers}; correct one of them"
        )


class Alternative(Contract):
    """A layout that was compared."""

    configuration: str
    samples_per_second: float
    liveput_samples_per_second: float
    pause_seconds: float


class ForecastSummary(Contract):
    """What was expected, per coming interval."""

    model: str
    interval_s: float
    mean: tuple[float, ...]
    """Instances at its end."""
    low: tuple[float, ...]
    """The 10 % quantile."""
    high: tuple[float, ...]
    """The 90 % quantile."""
    median: tuple[float, ...] = ()
    """The 50 % quantile; empty from an older planner."""
    removed: float
    """Expected removals over the whole horizon."""
    added: float


class PlanAnswer(Contract):
    """The answer."""

    layout: Layout | None
    """None when no layout is feasible."""
    samples_per_second: float = 0.0
    """Predicted, were nothing to change."""
    ideal_samples_per_second: float | None = None
    """Of the fastest layout for these workers, were they to stay and changes to cost nothing; None
    while speeds are not known, or from an older planner."""
    liveput_samples_per_second: float | None = None
    """Expected over the horizon under the forecast; None without a forecast."""
    pause_seconds: float | None = None
    """Expected, of changing to it now."""
    runner_up: str = ""
    """The next best configuration, empty when there is none."""
    alternatives: tuple[Alternative, ...] = ()
    """What else was considered, best first, the chosen one included; bounded."""
    forecast: ForecastSummary | None = None
    why: str
    """One sentence a user understands."""


class ForecastRequest(Contract):
    """What may come, without a plan."""

    num_workers: Annotated[int, Field(ge=0, le=MOST_WORKERS)]
    """There now."""
    capacity: Annotated[int, Field(ge=1, le=MOST_WORKERS)] | None = None
    """Workers that are asked for; None takes what was seen."""
    history: History | None = None
    likely_removals: Annotated[int, Field(ge=0, le=MOST_WORKERS)] = 0
    """Of these workers: on instances with a hint that they may go."""
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)] = HORIZON
    """Intervals to look ahead."""
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        _check_capacity(self.capacity, self.num_workers)
        return self


def _check_capacity(capacity: int | None, num_workers: int) -> None:
    if capacity is not None and capacity < num_workers:
        raise ValueError(
            f"capacity ({capacity}) is below num_workers ({num_workers}); give at least as many"
        )


class Planner(Protocol):
    """Chooses layouts."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """Choose. Deterministic: the same question gets the same answer."""
        ...
