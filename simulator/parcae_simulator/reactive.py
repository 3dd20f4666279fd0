"""The published baseline: always the fastest layout, every change a restart from a checkpoint.

Source: Parcae (NSDI 2024), the artifact's ``throughput`` policy, restated. It pays for every
event, also one that touches nothing, and reloads all stages one after the other from one store;
it is not Varuna.
"""

from __future__ import annotations

from parcae_optimizer.rules import NOTHING
from parcae_simulator.ledger import Ledger
from parcae_simulator.outcome import Outcome, outcome_of
from parcae_simulator.profiles import Kind, ModelProfile
from parcae_simulator.scenario import Scenario
from parcae_simulator.times import CHECKPOINT_MS, Times


def replay_reactive(profile: ModelProfile, scenario: Scenario) -> Outcome:
    """Replay the baseline; it sees each event before it decides."""
    times = Times(profile)
    ledger = Ledger(scenario.interval_s)
    for index in range(scenario.first, scenario.stop):
        added, removed = scenario.event(index)
        count = scenario.series.available[index]
        is_first = index == scenario.first
        grid = profile.best(count)
        if grid is None:
            ledger.forgive()
            ledger.earn(count, NOTHING, 0.0)
            continue
        if is_first or added or removed:
            kind = Kind.ADD if is_first or added else Kind.REMOVE
            restart_ms = times.restart(grid, kind)
            cost_ms = restart_ms + float(times.stage_send(grid.pipeline).sum())
            cost_ms += 0.0 if is_first else CHECKPOINT_MS
            ledger.charge(cost_ms / 1000, restart_ms / 1000)
        ledger.earn(count, grid, profile.speed(grid))
    return outcome_of([ledger.intervals], "reactive", "seen")
