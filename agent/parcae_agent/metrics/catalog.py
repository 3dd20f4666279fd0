"""The metrics of one agent and its worker. Each carries ``namespace`` and ``job``."""

from __future__ import annotations

from parcae_api.metric import Kind, Metric, Restart

OF_JOB = ("namespace", "job")
STEP_BUCKETS_S = (0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
_SUPERVISOR, _WORKER = "the agent", "the worker"


def _gauge(name: str, unit: str, text: str, *labels: str, source: str = _WORKER) -> Metric:
    labels = (*OF_JOB, *labels)
    return Metric(f"parcae_{name}", Kind.GAUGE, labels, unit, text, source, Restart.AS_SEEN)


def _agents(name: str, unit: str, text: str, *labels: str) -> Metric:
    return _gauge(f"agent_{name}", unit, text, *labels, source=_SUPERVISOR)


def _counter(name: str, unit: str, text: str, *labels: str) -> Metric:
    labels, name = (*OF_JOB, *labels), f"parcae_worker_{name}_total"
    return Metric(name, Kind.COUNTER, labels, unit, text, _WORKER, Restart.ANEW)


def _summary(name: str, text: str, kind: Kind = Kind.SUMMARY) -> Metric:
    name = f"parcae_worker_{name}_seconds"
    return Metric(name, kind, OF_JOB, "s", text, _WORKER, Restart.ANEW)


BUILD_INFO = _agents("build_info", "1", "The agent's version, and torch's.", "version", "torch")
STATE = _agents(
    "state",
    "0 or 1",
    "1 for what the agent does: starting, standby (ready, outside the grid), training, leaving.",
    "state",
)
PLAN_REVISION = _agents("plan_revision", "", "Number of the newest plan that it has heard of.")
NOTICE = _agents("notice", "0 or 1", "Whether its instance has a notice that it goes away.")
DEADLINE = _agents(
    "notice_deadline_seconds",
    "s",
    "Until its instance goes away; below 0 when it should have. Absent without a notice.",
)
HINT = _agents("hint", "0 or 1", "Whether its cloud hints that the instance may go away.")
BOARD_UP = _agents("board_up", "0 or 1", "Whether it has its place on the board (its lease).")
UNSENT = _agents("unsent_writes", "writes", "What it has to tell the board and could not yet.")
SILENT = _agents(
    "worker_silent_seconds",
    "s",
    "Since its worker last said anything; a worker that is ready says something every second.",
)

REVISION = _gauge("worker_revision", "", "Number of the plan it trains in; 0 outside the grid.")
REPLICA = _gauge("worker_replica", "", "Its place in the grid, from 0; absent outside.")
STAGE = _gauge("worker_stage", "", "Its place in its pipeline, from 0; absent outside the grid.")
LAYERS = _gauge("worker_layers", "layers", "Layers whose state it holds.")
STATE_BYTES = _gauge("worker_state_bytes", "bytes", "Parameters and optimizer state it holds.")
MEMORY = _gauge(
    "worker_memory_bytes",
    "bytes",
    "Memory of its process: host (resident), device_allocated and device_reserved (by torch).",
    "kind",
)
STEP = _gauge("worker_step", "steps", "Committed steps that its state has seen.")
LOSS = _gauge("worker_loss", "", "Loss of the newest step, over the global batch: alike on all.")
NORM = _gauge("worker_gradient_norm", "", "Of the newest step's mean gradient, before clipping.")
STEPS = _counter("steps", "steps", "Steps that it committed.")
SAMPLES = _counter("samples", "samples", "Samples that went through it in committed steps.")
TOKENS = _counter(
    "tokens", "tokens", "Tokens of these samples; stays 0 unless the model's input is token ids."
)
STEP_SECONDS = _summary("step", "Time of committed steps.", Kind.HISTOGRAM)
PART_SECONDS = _counter(
    "step_part_seconds",
    "s",
    "Where that time went: data (loading), compute (its own layers), pipeline (waiting for its "
    "neighbours), reduce (gradients among replicas), vote, apply (the optimizer), other.",
    "part",
)
EPOCHS = _counter(
    "epochs", "plans", "Plans it took part in: formed, or broken (before or after that).", "outcome"
)
REGROUP_SECONDS = _summary(
    "regroup", "Time to form: to meet, agree, move state and build groups; of those that formed."
)
PAUSE_SECONDS = _summary(
    "pause", "From its last committed step to the first work on the next, over a change of plan."
)
MIGRATION_BYTES = _counter(
    "migration_bytes", "bytes", "Model state that it sent and received.", "direction"
)
CHECKPOINT_SECONDS = _summary("checkpoint", "Time to write its share of a checkpoint.")
CHECKPOINT_BYTES = _counter("checkpoint_bytes", "bytes", "What it wrote to checkpoints.")
CHECKPOINT_FAILURES = _counter(
    "checkpoint_failures", "times", "Shares of checkpoints that could not be written."
)
CHECKPOINT_STEP = _gauge("worker_checkpoint_step", "steps", "Of its newest share of a checkpoint.")

AGENT_METRICS = (
    BUILD_INFO,
    STATE,
    PLAN_REVISION,
    NOTICE,
    DEADLINE,
    HINT,
    BOARD_UP,
    UNSENT,
    SILENT,
    REVISION,
    REPLICA,
    STAGE,
    LAYERS,
    STATE_BYTES,
    MEMORY,
    STEP,
    LOSS,
    NORM,
    STEPS,
    SAMPLES,
    TOKENS,
    STEP_SECONDS,
    PART_SECONDS,
    EPOCHS,
    REGROUP_SECONDS,
    PAUSE_SECONDS,
    MIGRATION_BYTES,
    CHECKPOINT_SECONDS,
    CHECKPOINT_BYTES,
    CHECKPOINT_FAILURES,
    CHECKPOINT_STEP,
)
"""In the order in which they are told."""
