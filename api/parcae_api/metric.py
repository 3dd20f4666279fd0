"""What is told of one metric: its name and type for programs, its meaning for people."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

AGENT_METRICS_PORT = 8082
"""Where an agent tells its metrics that was told nothing else."""


class Kind(StrEnum):
    """Prometheus' types."""

    GAUGE = "gauge"
    COUNTER = "counter"
    SUMMARY = "summary"
    """Sum and count alone: no quantiles."""
    HISTOGRAM = "histogram"


class Restart(StrEnum):
    """What a metric is after the process that tells it was replaced."""

    GOES_ON = "goes on where it was"
    """Read from the job's status, which the API server keeps."""
    ANEW = "begins at 0"
    """Counted by the process; Prometheus' ``rate`` and ``increase`` take that into account."""
    AS_SEEN = "as soon as it is seen again"
    """No memory is in it: how things stand."""
    AFTER_A_PLAN = "at the next question to the planner"
    """Absent until then, one interval at most."""


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: As Prometheus shows it; of a counter with its ``_total``.
        kind: Its type.
        labels: In order.
        unit: Of its values.
        help: What it means, in one sentence.
        source: Where its teller has it from.
        restart: What it is after a restart of its teller.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    help: str
    source: str
    restart: Restart
