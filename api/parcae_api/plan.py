"""The plan: the complete assignment of workers to grid cells, and its revision.

The operator writes it by compare-and-swap on the revision, which only grows; agents obey the
newest they have seen and are fenced out of every older one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from parcae_api.model import Contract

WorkerId = str
"""``<incarnation>/<index in its agent>``: never reused, since incarnations are not."""


class Cell(NamedTuple):
    """A place in the grid: replica d of stage p."""

    replica: int
    stage: int


class PlanReason(StrEnum):
    """What made the operator plan anew."""

    INITIAL = "initial"
    NOTICE = "notice"
    LOSS = "loss"
    JOIN = "join"
    FORECAST = "forecast"
    ROLLBACK = "rollback"
    SUSPEND = "suspend"
    FINISH = "finish"

    @property
    def breaks_the_epoch(self) -> bool:
        """Whether workers leave at once instead of at the next step boundary."""
        return self in (PlanReason.LOSS, PlanReason.ROLLBACK)


class Configuration(Contract):
    """D×P: data-parallel degree times pipeline depth."""

    data: Annotated[int, Field(ge=1)]
    pipeline: Annotated[int, Field(ge=1)]

    def __str__(self) -> str:
        return f"{self.data}x{self.pipeline}"

    @property
    def workers(self) -> int:
        """Cells of the grid."""
        return self.data * self.pipeline


class Layout(Contract):
    """A configuration with its details: layers of each stage, micro-batches of each pipeline."""

    configuration: Configuration
    boundaries: tuple[Annotated[int, Field(ge=0, le=1_000_000)], ...]
    """P+1 rising layer indices: stage p holds layers boundaries[p] … boundaries[p+1]-1."""
    micro_batches: tuple[Annotated[int, Field(ge=0, le=1_000_000)], ...]
    """Micro-batches of each of the D pipelines; they need not be equal."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        d, p = self.configuration.data, self.configuration.pipeline
        if len(self.boundaries) != p + 1 or self.boundaries[0] != 0:
            raise ValueError(
                f"boundaries are {_shown(self.boundaries)}; for {p} stages give {p + 1} rising "
                "layer indices, the first of them 0"
            )
        if any(a >= b for a, b in zip(self.boundaries, self.boundaries[1:], strict=False)):
            raise ValueError(
                f"boundaries are {_shown(self.boundaries)}; let them rise, so that every stage "
                "holds at least one layer"
            )
        if len(self.micro_batches) != d or min(self.micro_batches) < 1:
            raise ValueError(
                f"micro_batches are {_shown(self.micro_batches)}; for {d} replicas give as many "
                "counts of at least 1"
            )
        return self

    @property
    def num_layers(self) -> int:
        """Layers of the whole model."""
        return self.boundaries[-1]

    def layers(self, stage: int) -> range:
        """Layer indices of a stage."""
        return range(self.boundaries[stage], self.boundaries[stage + 1])

    def micro_batch_range(self, replica: int) -> range:
        """Global micro-batch indices that a pipeline runs."""
        start = sum(self.micro_batches[:replica])
        return range(start, start + self.micro_batches[replica])


def _shown(numbers: tuple[int, ...]) -> str:
    """A list for a message, its beginning where it is long."""
    few = [str(number) for number in numbers[:8]]
    return f"[{', '.join([*few, *['…'] * (len(numbers) > len(few))])}]"


class Plan(Contract):
    """One revision. With no layout, every worker leaves the grid and keeps its state."""

    revision: Annotated[int, Field(ge=1)]
    reason: PlanReason
    why: str
    """One sentence a user understands."""
    created_unix_s: float
    layout: Layout | None = None
    grid: tuple[tuple[WorkerId, ...], ...] = ()
    """``grid[d][p]``: the worker in that cell."""
    donors: tuple[WorkerId, ...] = ()
    """Workers outside the grid that take part until their state is out."""
    followers: tuple[WorkerId, ...] = ()
    keepers: tuple[WorkerId, ...] = ()

    @model_validator(mode="after")
    def _grid_fits(self) -> Self:
        shape = [len(row) for row in self.grid]
        if self.layout is None:
            if shape:
                raise ValueError("a plan without a layout has no grid")
            return self
        c = self.layout.configuration
        if shape != [c.pipeline] * c.data:
            raise ValueError(f"grid must be {c.data} rows of {c.pipeline} workers, not {shape}")
        members = self.members
        if len(set(members)) != len(members):
            raise ValueError("a worker has more than one place in the plan")
        return self

    @property
    def workers(self) -> tuple[WorkerId, ...]:
        """Workers of the grid, replica by replica: their order is their rank."""
        return tuple(worker for row in self.grid for worker in row)

    @property
    def members(self) -> tuple[WorkerId, ...]:
        """Workers that form the epoch together: the grid, then the donors."""
        return self.workers + self.donors

    def cells(self) -> Iterator[tuple[WorkerId, Cell]]:
        """Every worker with its cell, in rank order."""
        for d, row in enumerate(self.grid):
            for p, worker in enumerate(row):
                yield worker, Cell(d, p)

    def cell_of(self, worker: WorkerId) -> Cell | None:
        """The worker's cell, or None outside the grid."""
        return next((cell for member, cell in self.cells() if member == worker), None)


class Rendezvous(Contract):
    """Where the members of a revision meet: the store that its first worker serves."""

    revision: int
    host: str
    port: int
