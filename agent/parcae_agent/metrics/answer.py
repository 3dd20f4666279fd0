"""An agent's answer to Prometheus, from its page and what its supervisor knows. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from parcae_agent.metrics import catalog as of
from parcae_agent.metrics.page import FIRST_BUCKET, NUM_BUCKETS, Slot
from parcae_api.exposition import Sample, metric_lines
from parcae_api.membership import AgentState
from parcae_api.metric import Metric

Numbers = Sequence[float]

_GAUGES = (
    (of.REVISION, Slot.REVISION),
    (of.REPLICA, Slot.REPLICA),
    (of.STAGE, Slot.STAGE),
    (of.LAYERS, Slot.LAYERS),
    (of.STATE_BYTES, Slot.STATE_BYTES),
    (of.STEP, Slot.STEP),
    (of.LOSS, Slot.LOSS),
    (of.NORM, Slot.NORM),
    (of.CHECKPOINT_STEP, Slot.CHECKPOINT_STEP),
)
_COUNTERS = (
    (of.STEPS, Slot.STEPS),
    (of.SAMPLES, Slot.SAMPLES),
    (of.TOKENS, Slot.TOKENS),
    (of.CHECKPOINT_BYTES, Slot.CHECKPOINT_BYTES),
    (of.CHECKPOINT_FAILURES, Slot.CHECKPOINT_FAILURES),
)
_SUMMARIES = (
    (of.REGROUP_SECONDS, Slot.FORMED, Slot.REGROUP_SECONDS),
    (of.PAUSE_SECONDS, Slot.PAUSES, Slot.PAUSE_SECONDS),
    (of.CHECKPOINT_SECONDS, Slot.CHECKPOINTS, Slot.CHECKPOINT_SECONDS),
)
_PARTS = {
    "data": Slot.DATA_SECONDS,
    "compute": Slot.COMPUTE_SECONDS,
    "pipeline": Slot.PIPELINE_SECONDS,
    "reduce": Slot.REDUCE_SECONDS,
    "vote": Slot.VOTE_SECONDS,
    "apply": Slot.APPLY_SECONDS,
    "other": Slot.OTHER_SECONDS,
}
_BOUNDS = (*(f"{bound:g}" for bound in of.STEP_BUCKETS_S), "+Inf")


@dataclass(frozen=True, kw_only=True)
class AgentFacts:
    """What a supervisor knows at the moment of a scrape."""

    namespace: str
    job: str
    state: AgentState
    plan_revision: int
    deadline_unix_s: float | None
    """Of its notice; None without one."""
    has_hint: bool
    board_up: bool
    unsent_writes: int
    silent_s: float
    host_bytes: int | None
    """Resident memory of the worker; None where it has none any more."""


@dataclass(frozen=True)
class Build:
    """What runs."""

    version: str
    torch: str


def answer(facts: AgentFacts, numbers: Numbers, build: Build, now_unix_s: float) -> bytes:
    """The text.

    Args:
        facts: The supervisor's.
        numbers: The worker's page.
        build: This program's.
        now_unix_s: The time that a deadline is told from.
    """
    told = {**_of_agent(facts, build, now_unix_s), **_of_worker(facts, numbers)}
    whose = {"namespace": facts.namespace, "job": facts.job}
    lines = (
        line
        for metric in of.AGENT_METRICS
        for line in metric_lines(metric, _with(whose, told.get(metric, ())))
    )
    return "".join(lines).encode()


def _with(whose: Mapping[str, str], samples: Iterable[Sample]) -> Iterator[Sample]:
    return (Sample(value, {**whose, **labels}, suffix) for value, labels, suffix in samples)


def _of_agent(facts: AgentFacts, build: Build, now_unix_s: float) -> dict[Metric, list[Sample]]:
    deadline = facts.deadline_unix_s
    left = [] if deadline is None else [Sample(deadline - now_unix_s)]
    return {
        of.BUILD_INFO: [Sample(1, {"version": build.version, "torch": build.torch})],
        of.STATE: [Sample(facts.state is each, {"state": each.value}) for each in AgentState],
        of.PLAN_REVISION: [Sample(facts.plan_revision)],
        of.NOTICE: [Sample(deadline is not None)],
        of.DEADLINE: left,
        of.HINT: [Sample(facts.has_hint)],
        of.BOARD_UP: [Sample(facts.board_up)],
        of.UNSENT: [Sample(facts.unsent_writes)],
        of.SILENT: [Sample(facts.silent_s)],
    }


def _of_worker(facts: AgentFacts, numbers: Numbers) -> dict[Metric, list[Sample]]:
    told = {metric: _known(numbers[slot]) for metric, slot in _GAUGES}
    told |= {metric: [Sample(numbers[slot])] for metric, slot in _COUNTERS}
    for metric, count, total in _SUMMARIES:
        told[metric] = [
            Sample(numbers[count], suffix="_count"),
            Sample(numbers[total], suffix="_sum"),
        ]
    host = math.nan if facts.host_bytes is None else facts.host_bytes
    told[of.MEMORY] = [
        *_known(host, kind="host"),
        *_known(numbers[Slot.DEVICE_ALLOCATED], kind="device_allocated"),
        *_known(numbers[Slot.DEVICE_RESERVED], kind="device_reserved"),
    ]
    told[of.STEP_SECONDS] = _histogram(numbers)
    told[of.PART_SECONDS] = [Sample(numbers[k], {"part": name}) for name, k in _PARTS.items()]
    told[of.EPOCHS] = [
        Sample(numbers[Slot.FORMED], {"outcome": "formed"}),
        Sample(numbers[Slot.BROKEN], {"outcome": "broken"}),
    ]
    told[of.MIGRATION_BYTES] = [
        Sample(numbers[Slot.BYTES_SENT], {"direction": "sent"}),
        Sample(numbers[Slot.BYTES_RECEIVED], {"direction": "received"}),
    ]
    return told


def _known(value: float, **labels: str) -> list[Sample]:
    return [] if math.isnan(value) else [Sample(value, labels)]


def _histogram(numbers: Numbers) -> list[Sample]:
    """The count is that of its buckets: so they always agree."""
    buckets = list(accumulate(numbers[FIRST_BUCKET : FIRST_BUCKET + NUM_BUCKETS]))
    told = [
        Sample(count, {"le": bound}, "_bucket")
        for count, bound in zip(buckets, _BOUNDS, strict=True)
    ]
    sum_and_count = (Sample(numbers[Slot.STEP_SECONDS], suffix="_sum"),)
    return [*told, *sum_and_count, Sample(buckets[-1], suffix="_count")]
