"""The metrics of one job. Each carries its ``namespace`` and ``job``."""

from __future__ import annotations

from parcae_api.metric import Kind, Metric, Restart

OF_JOB = ("namespace", "job")
_PLANNER = "the planner's newest answer"
_STATUS = "the job's status"


def _gauge(
    name: str,
    unit: str,
    text: str,
    *labels: str,
    source: str = _STATUS,
    restart: Restart = Restart.AS_SEEN,
) -> Metric:
    return Metric(f"parcae_{name}", Kind.GAUGE, (*OF_JOB, *labels), unit, text, source, restart)


def _counter(name: str, unit: str, text: str, *labels: str) -> Metric:
    labels = (*OF_JOB, *labels)
    return Metric(
        f"parcae_{name}_total", Kind.COUNTER, labels, unit, text, _STATUS, Restart.GOES_ON
    )


LIVEPUT = _gauge(
    "liveput_samples_per_second",
    "samples/s",
    "Committed samples per second that the plan expects over the horizon, under the newest "
    "forecast of preemptions; 0 while training pauses, and until layers are measured.",
)
THROUGHPUT = _gauge(
    "throughput_samples_per_second",
    "samples/s",
    "Committed samples per second, as the workers measure it; 0 while nothing trains.",
)
IDEAL = _gauge(
    "ideal_samples_per_second",
    "samples/s",
    "What the fastest layout would train on the instances that are there to stay, were none to go "
    "and changes to cost nothing; 0 where there are too few, absent while layers are not measured.",
    source=_PLANNER,
    restart=Restart.AFTER_A_PLAN,
)
INSTANCES = _gauge(
    "instances",
    "instances",
    "Instances by what they do: training (in the grid), standby (ready, outside), starting (on a "
    "node, not ready), pending (waiting for a node), leaving (with a notice).",
    "state",
    source="pods and the board",
)
INSTANCES_MIN = _gauge(
    "instances_min",
    "instances",
    "With fewer, training pauses: spec.instances.min.",
    source="the job's spec",
)
INSTANCES_MAX = _gauge(
    "instances_max",
    "instances",
    "Asked for: spec.instances.max.",
    source="the job's spec",
)
FORECAST = _gauge(
    "forecast_instances",
    "instances",
    "Instances expected so many seconds ahead, by the forecast behind the newest decision (the one "
    "to stay included): the 0.1, 0.5 and 0.9 quantile at up to four points of the horizon; absent "
    "while plans are reactive.",
    "horizon_seconds",
    "quantile",
    source=_PLANNER,
    restart=Restart.AFTER_A_PLAN,
)
CONFIGURATION = _gauge(
    "configuration",
    "replicas, stages",
    "The current layout: data (replicas) and pipeline (stages); both 0 while training pauses.",
    "axis",
)
PLAN_REVISION = _gauge(
    "plan_revision", "", "Number of the current plan; it only grows while the job lives."
)
PREEMPTIONS = _counter(
    "preemptions",
    "instances",
    "Instances lost, by whether a notice came before.",
    "noticed",
)
MIGRATIONS = _counter(
    "migrations",
    "changes",
    "Changes of plan that formed: intra_stage (regrouped only), inter_stage (a stage's state was "
    "copied), pipeline (layers were cut anew).",
    "kind",
)
MIGRATION_PAUSE = Metric(
    "parcae_migration_pause_seconds",
    Kind.SUMMARY,
    (*OF_JOB, "kind"),
    "s",
    "Pauses of training by changes of plan, from the last step before to the first one after: "
    "their sum and how many.",
    _STATUS,
    Restart.GOES_ON,
)
MIGRATION_BYTES = _counter(
    "migration_bytes",
    "bytes",
    "Model state that went from one worker to another in changes of plan.",
    "kind",
)
STEPS_COMMITTED = _counter(
    "steps_committed",
    "steps",
    "The furthest step that was ever committed: each counts once, whatever was preempted.",
)
STEPS_REPLAYED = _counter(
    "steps_replayed",
    "steps",
    "Steps, or parts of one, trained a second time because their state was lost.",
)
SAMPLES_COMMITTED = _counter(
    "samples_committed",
    "samples",
    "Samples up to the furthest step that was ever committed.",
)
CHECKPOINT_AGE = _gauge(
    "checkpoint_age_seconds",
    "s",
    "Since the newest checkpoint that has every layer was complete; absent before the first, "
    "without checkpoint.path, while training pauses, and for seconds after a change of plan.",
    source="the board (progress)",
)
JOB_CONDITION = _gauge(
    "job_condition", "0 or 1", "Whether a condition of the job's status is True.", "type"
)
JOB_PHASE = _gauge("job_phase", "0 or 1", "1 for the phase that the job is in.", "phase")

JOB_METRICS = (
    LIVEPUT,
    THROUGHPUT,
    IDEAL,
    INSTANCES,
    INSTANCES_MIN,
    INSTANCES_MAX,
    FORECAST,
    CONFIGURATION,
    PLAN_REVISION,
    PREEMPTIONS,
    MIGRATIONS,
    MIGRATION_PAUSE,
    MIGRATION_BYTES,
    STEPS_COMMITTED,
    STEPS_REPLAYED,
    SAMPLES_COMMITTED,
    CHECKPOINT_AGE,
    JOB_CONDITION,
    JOB_PHASE,
)
