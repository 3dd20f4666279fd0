"""One job's metrics from its facts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from parcae_api.events import MigrationKind
from parcae_api.job_status import ConditionType, JobStatus, MigrationTotals, Phase
from parcae_api.planning import ForecastSummary
from parcae_operator.metrics import job_catalog as jobs
from parcae_operator.metrics.facts import JobFacts
from parcae_operator.metrics.families import Families
from parcae_operator.status import is_over

_STATES = ("training", "standby", "starting", "pending", "leaving")


def add_job(families: Families, facts: JobFacts, now_unix_s: float) -> None:
    """All that is told of one job at that time."""
    of_job = (facts.namespace, facts.name)
    _add_speeds(families, of_job, facts)
    _add_instances(families, of_job, facts)
    _add_plan(families, of_job, facts)
    _add_counters(families, of_job, facts.written)
    _add_conditions(families, of_job, facts.now)
    if facts.checkpoint_unix_s is not None and facts.now.configuration:
        age_s = max(0.0, now_unix_s - facts.checkpoint_unix_s)
        families.add(jobs.CHECKPOINT_AGE, of_job, age_s)


def _add_speeds(families: Families, of_job: tuple[str, str], facts: JobFacts) -> None:
    families.add(jobs.LIVEPUT, of_job, facts.now.liveput_samples_per_second)
    families.add(jobs.THROUGHPUT, of_job, facts.now.throughput_samples_per_second)
    if (ideal := _ideal(facts)) is not None:
        families.add(jobs.IDEAL, of_job, ideal)


def _ideal(facts: JobFacts) -> float | None:
    now, wanted, answer = facts.now, facts.instances, facts.answer
    if _rests(now):
        return 0.0
    if wanted is not None and now.instances < wanted.min:
        return 0.0
    if answer is None:
        return None
    return answer.ideal_samples_per_second if answer.layout is not None else 0.0


def _rests(now: JobStatus) -> bool:
    """Whether nothing is to train: it is over or suspended."""
    return is_over(now) or now.holds(ConditionType.SUSPENDED)


def _add_instances(families: Families, of_job: tuple[str, str], facts: JobFacts) -> None:
    for state in _STATES:
        count = getattr(facts.now.instance_counts, state)
        families.add(jobs.INSTANCES, (*of_job, state), count)
    if facts.instances is not None:
        families.add(jobs.INSTANCES_MIN, of_job, facts.instances.min)
        families.add(jobs.INSTANCES_MAX, of_job, facts.instances.max)
    forecast = facts.answer.forecast if facts.answer is not None else None
    if forecast is not None and not _rests(facts.now):
        for labels, value in forecast_points(forecast):
            families.add(jobs.FORECAST, (*of_job, *labels), value)


def forecast_points(forecast: ForecastSummary) -> Iterator[tuple[tuple[str, str], float]]:
    """((seconds ahead, quantile), instances) at four points of the horizon at most."""
    length = len(forecast.mean)
    points = sorted({1, -(-length // 4), -(-length // 2), length} - {0}) if length else []
    for quantile, values in (
        ("0.1", forecast.low),
        ("0.5", forecast.median),
        ("0.9", forecast.high),
    ):
        for point in points:
            if point <= len(values):
                yield (f"{point * forecast.interval_s:g}", quantile), values[point - 1]


def _add_plan(families: Families, of_job: tuple[str, str], facts: JobFacts) -> None:
    data, _, pipeline = facts.now.configuration.partition("x")
    for axis, degree in (("data", data), ("pipeline", pipeline)):
        value = int(degree) if degree.isdecimal() else 0
        families.add(jobs.CONFIGURATION, (*of_job, axis), value)
    families.add(jobs.PLAN_REVISION, of_job, facts.now.revision)


def _add_counters(families: Families, of_job: tuple[str, str], kept: JobStatus) -> None:
    noticed = kept.preemptions_noticed
    families.add(jobs.PREEMPTIONS, (*of_job, "true"), noticed)
    families.add(jobs.PREEMPTIONS, (*of_job, "false"), max(0, kept.preemptions - noticed))
    for totals in _of_every_kind(kept.migration_totals):
        labels = (*of_job, totals.kind)
        families.add(jobs.MIGRATIONS, labels, totals.migrations)
        families.add_summary(jobs.MIGRATION_PAUSE, labels, totals.migrations, totals.pause_seconds)
        families.add(jobs.MIGRATION_BYTES, labels, totals.bytes_moved)
    families.add(jobs.STEPS_COMMITTED, of_job, max(kept.step, kept.steps_committed))
    families.add(jobs.SAMPLES_COMMITTED, of_job, max(kept.samples, kept.samples_committed))
    families.add(jobs.STEPS_REPLAYED, of_job, kept.steps_replayed)


def _of_every_kind(known: Iterable[MigrationTotals]) -> Iterator[MigrationTotals]:
    """Those that never were are told as 0: a counter that appears with a 1 tells no increase."""
    by_kind = {totals.kind: totals for totals in known}
    for kind in MigrationKind:
        yield by_kind.pop(str(kind), MigrationTotals(kind=str(kind)))
    yield from by_kind.values()


def _add_conditions(families: Families, of_job: tuple[str, str], now: JobStatus) -> None:
    for type_ in ConditionType:
        families.add(jobs.JOB_CONDITION, (*of_job, type_.value), now.holds(type_))
    for phase in Phase:
        families.add(jobs.JOB_PHASE, (*of_job, phase.value), phase is now.phase)
