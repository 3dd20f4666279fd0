"""Many evaluations at once, in processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from parcae_predictor.evaluate import Scores, evaluate, judged_predictor
from parcae_traces.model import Trace
from parcae_traces.series import series_of


def judge(
    traces: Sequence[Trace], models: Sequence[str], *, every: int = 1, jobs: int = 0
) -> Iterator[Scores]:
    """Judge each model on each trace, and give each result as soon as it is there.

    Args:
        traces: What to judge on.
        models: Names.
        every: Intervals between origins.
        jobs: Processes; 0 for one per CPU, 1 for none but this one.

    Raises:
        InputError: a name is unknown, or a trace too short.
    """
    # Longest first, so that no process is left alone with a long one at the end.
    tasks = [
        (trace, model)
        for trace in sorted(traces, key=lambda trace: -trace.duration_s)
        for model in models
    ]
    workers = min(jobs or os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for trace, model in tasks:
            yield _one(trace, model, every)
        return
    # Not forked: a progress bar's thread may hold a lock at that moment.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context)
    try:
        waiting = [pool.submit(_one, trace, model, every) for trace, model in tasks]
        for done in as_completed(waiting):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _one(trace: Trace, model: str, every: int) -> Scores:
    return evaluate(
        judged_predictor(model, trace),
        series_of(trace),
        trace.capacity,
        trace=trace.name,
        stride=every,
    )
