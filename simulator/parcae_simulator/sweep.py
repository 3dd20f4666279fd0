"""Models × scenarios, one cell at a time or on all cores."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from parcae_simulator.models import Model, RuleSet
from parcae_simulator.outcome import Outcome
from parcae_simulator.scenario import Scenario
from parcae_simulator.simulate import Bench, Options

_MOST_BENCHES = 4
FEW_CELLS = 2
"""Up to so many are not worth starting processes for."""
JOBS_PER_CORE = 2
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """One model on one scenario, with the results of all policies."""

    model: Model
    scenario: Scenario
    rules: RuleSet
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
    with _one_thread_each(), ProcessPoolExecutor(cores, mp_context=context) as pool:
        jobs = {
            pool.submit(_run_cells, [pairs[place] for place in places], options): places
            for places in _shared_out(len(models), len(scenarios), cores)
        }
        try:
            for job in as_completed(jobs):
                yield from zip(jobs[job], job.result(), strict=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """New processes compute with one thread: those of several would wait for each other."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _shared_out(num_models: int, num_scenarios: int, cores: int) -> list[range]:
    """Places by job: as many cells of one model together as leaves enough jobs for all cores.

    A process works out a model's costs once for all cells of a job.
    """
    cells = num_models * num_scenarios
    size = min(num_scenarios, max(1, cells // (JOBS_PER_CORE * cores)))
    return [
        range(start, min(start + size, (model + 1) * num_scenarios))
        for model in range(num_models)
        for start in range(model * num_scenarios, (model + 1) * num_scenarios, size)
    ]


def _run_cells(pairs: Sequence[tuple[Model, Scenario]], options: Options) -> list[Cell]:
    return [run_cell(model, scenario, options) for model, scenario in pairs]


def run_cell(model: Model, scenario: Scenario, options: Options) -> Cell:
    """All policies of one cell."""
    bench = _bench(model, options, scenario.capacity)
    outcomes = tuple(bench.outcomes(scenario))
    return Cell(model, scenario, options.rules, bench.ideal(scenario), outcomes)


_benches: list[Bench] = []


def _bench(model: Model, options: Options, capacity: int) -> Bench:
    """What a process worked out for a model serves its next cell; few are kept."""
    for bench in _benches:
        if (bench.model, bench.options, bench.capacity) == (model, options, capacity):
            return bench
    del _benches[:-_MOST_BENCHES]
    _benches.append(Bench(model, options, capacity))
    return _benches[-1]
