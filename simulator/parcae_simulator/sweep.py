"""Models × scenarios, one cell at a time or on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from parcae_simulator.models import Model
from parcae_simulator.outcome import Outcome
from parcae_simulator.scenario import Scenario
from parcae_simulator.simulate import Bench, Options

_MOST_BENCHES = 4
FEW_CELLS = 2
"""Up to so many are not worth starting processes for."""


@dataclass(frozen=True)
class Cell:
    """One model on one scenario, with the results of all policies."""

    model: Model
    scenario: Scenario
    ideal: Outcome
    outcomes: tuple[Outcome, ...]

    def of(self, policy: str) -> Outcome | None:
        """The first outcome of a policy."""
        return next((found for found in self.outcomes if found.policy == policy), None)


def sweep(
    models: Sequence[Model], scenarios: Sequence[Scenario], options: Options, cores: int | None
) -> Iterator[tuple[int, Cell]]:
    """Run all cells; each comes with its place in order of models, then scenarios.

    Args:
        models: What trains.
        scenarios: What happens.
        options: Variants of the policies.
        cores: Processes to use; None: one per core.

    Raises:
        InputError: a policy needs what a model's profile does not tell.
    """
    pairs = [(model, scenario) for model in models for scenario in scenarios]
    cores = min(cores or os.cpu_count() or 1, len(pairs)) if pairs else 1
    if cores < 2 or len(pairs) <= FEW_CELLS:
        for place, (model, scenario) in enumerate(pairs):
            yield place, run_cell(model, scenario, options)
        return
    # Fresh processes: a fork would copy whatever threads the caller has, half way through.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as pool:
        jobs = {
            pool.submit(run_cell, model, scenario, options): place
            for place, (model, scenario) in enumerate(pairs)
        }
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_cell(model: Model, scenario: Scenario, options: Options) -> Cell:
    """All policies of one cell."""
    bench = _bench(model, options, scenario.capacity)
    return Cell(model, scenario, bench.ideal(scenario), tuple(bench.outcomes(scenario)))


_benches: list[Bench] = []


def _bench(model: Model, options: Options, capacity: int) -> Bench:
    """What a process worked out for a model serves its next cell; few are kept."""
    for bench in _benches:
        if (bench.model, bench.options, bench.capacity) == (model, options, capacity):
            return bench
    del _benches[:-_MOST_BENCHES]
    _benches.append(Bench(model, options, capacity))
    return _benches[-1]
