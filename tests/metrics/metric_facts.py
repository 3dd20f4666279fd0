"""Facts of a job in the middle of its training, and a source of facts written by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from parcae_api.job import Instances
from parcae_api.job_status import (
    Condition,
    ConditionType,
    InstanceCounts,
    JobStatus,
    MigrationTotals,
    Phase,
)
from parcae_api.plan import Configuration, Layout
from parcae_api.planning import ForecastSummary, PlanAnswer
from parcae_operator.metrics.collector import OperatorCollector
from parcae_operator.metrics.facts import JobFacts, NodeGroup
from parcae_operator.metrics.meter import Meter
from parcae_operator.metrics.text import write_text

HORIZON = 12


def condition(type_: ConditionType, holds: bool) -> Condition:
    return Condition(type=type_, status="True" if holds else "False", reason="Because")


def status(**changes: Any) -> JobStatus:
    return JobStatus(
        phase=Phase.TRAINING,
        conditions=(
            condition(ConditionType.READY, True),
            condition(ConditionType.DEGRADED, False),
        ),
        configuration="2x3",
        revision=7,
        step=1234,
        samples=9872,
        steps_committed=1240,
        samples_committed=9920,
        steps_replayed=6,
        instances=7,
        instance_counts=InstanceCounts(training=6, standby=1, starting=2, pending=3, leaving=4),
        throughput_samples_per_second=90.5,
        liveput_samples_per_second=80.25,
        preemptions=5,
        preemptions_noticed=3,
        migrations=4,
        migration_totals=(
            MigrationTotals(kind="inter_stage", migrations=1, pause_seconds=0.5, bytes_moved=10),
            MigrationTotals(kind="pipeline", migrations=3, pause_seconds=2.5, bytes_moved=900),
        ),
    ).model_copy(update=changes)


LAYOUT = Layout(
    configuration=Configuration(data=1, pipeline=1), boundaries=(0, 2), micro_batches=(4,)
)


def answer(**changes: Any) -> PlanAnswer:
    return PlanAnswer(
        layout=LAYOUT,
        ideal_samples_per_second=100.0,
        forecast=ForecastSummary(
            model="hazard",
            interval_s=60.0,
            mean=(7.0,) * HORIZON,
            low=tuple(float(k) for k in range(HORIZON)),
            median=tuple(100.0 + k for k in range(HORIZON)),
            high=tuple(200.0 + k for k in range(HORIZON)),
            removed=1.0,
            added=2.0,
        ),
        why="a test",
    ).model_copy(update=changes)


def facts(name: str = "gpt", **changes: Any) -> JobFacts:
    given: dict[str, Any] = {
        "namespace": "team",
        "name": name,
        "now": status(),
        "written": status(),
        "instances": Instances(min=2, max=16),
        "answer": answer(),
        "checkpoint_unix_s": time.time() - 1000,
        **changes,
    }
    return JobFacts(**given)


def broken() -> Any:
    raise RuntimeError("a mistake in this program")


@dataclass
class Source:
    """See ``FactSource``."""

    looks: list[Callable[[], JobFacts | None]] = field(default_factory=list)
    groups: Callable[[], Mapping[NodeGroup, int]] = dict
    board: Callable[[], bool | None] = lambda: True
    planner: Callable[[], bool | None] = lambda: True
    api_server: Callable[[], bool | None] = lambda: True

    def jobs(self) -> list[Callable[[], JobFacts | None]]:
        return self.looks

    def num_jobs(self) -> int:
        return len(self.looks)

    def nodes(self) -> Mapping[NodeGroup, int]:
        return self.groups()

    def board_up(self) -> bool | None:
        return self.board()

    def planner_up(self) -> bool | None:
        return self.planner()

    def api_server_up(self) -> bool | None:
        return self.api_server()


def registry_of(source: Source, meter: Meter | None = None) -> CollectorRegistry:
    registry = (meter or Meter()).registry
    registry.register(OperatorCollector(source, "1.2.3"))
    return registry


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Samples:
    """Every sample by its name and labels; twice the same is an error."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def scrape(source: Source, meter: Meter | None = None) -> Samples:
    return read(write_text(registry_of(source, meter)).decode())


class Told:
    """Samples by name, and labels that matter."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value; None where there is none. Several are an error."""
        found = [
            value
            for (known, of), value in self.samples.items()
            if known == f"parcae_{name}" and set(labels.items()) <= of
        ]
        assert len(found) <= 1, (name, labels, found)
        return found[0] if found else None

    def all(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Values by these labels."""
        return {
            tuple(dict(of)[label] for label in labels): value
            for (known, of), value in self.samples.items()
            if known == f"parcae_{name}"
        }


def told(*jobs: JobFacts) -> Told:
    """What is told of these jobs."""
    return Told(scrape(Source(looks=[lambda each=each: each for each in jobs])))  # type: ignore[misc]
