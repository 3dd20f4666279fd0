"""A model of a few uneven layers, and the published cost rules drawn out victim by victim."""

from __future__ import annotations

from collections.abc import Set
from itertools import combinations
from statistics import fmean

from parcae_optimizer.rules import NOTHING, Grid
from parcae_simulator.profiles import Kind, ModelProfile
from parcae_simulator.times import Times, stage_starts


def small_profile(**changes: object) -> ModelProfile:
    """Six uneven layers, depths 1 to 6, every pair of up to 12 workers measured."""
    fields: dict[str, object] = {
        "model": "small",
        "source": "a test",
        "global_batch_samples": 8,
        "micro_batch_samples": 1,
        "optimizer": "adam",
        "state_bytes_per_parameter": 12,
        "layer_parameters": [[1, 50_000], [2, 20_000], [1, 90_000], [2, 30_000]],
        "stages": {"min": 1, "max": 6},
        "samples_per_second": {
            f"{d}x{p}": d * p - 0.3 * p for d in range(1, 13) for p in range(1, 7) if d * p <= 12
        },
        "build_ms": {p: 100.0 / p for p in range(1, 7)},
        "rendezvous_ms": 50.0,
        "process_ms": 7.0,
        "restart_extra_ms": 3.0,
        "regroup_ms": {"per": "groups", "add": 11.0, "remove": 5.0},
        "transfer_us": {1000: 100.0, 100_000: 5000.0, 10_000_000: 900_000.0},
    }
    return ModelProfile.model_validate({**fields, **changes})


def enumerated_ms(
    profile: ModelProfile, instances: int, before: Grid, removed: int, after: Grid
) -> float:
    """The mean over every set of victims, one by one."""
    return fmean(
        _cost_ms(profile, before, removed, after, set(victims))
        for victims in combinations(range(instances), removed)
    )


def _cost_ms(
    profile: ModelProfile, before: Grid, removed: int, after: Grid, victims: Set[int]
) -> float:
    times = Times(profile)
    if removed == 0 and before == after:
        return 0.0
    kind = Kind.ADD if after.workers > before.workers - removed else Kind.REMOVE
    restart = times.restart(after, kind)
    alive_cells = [cell for cell in range(before.workers) if cell not in victims]
    if before.pipeline == after.pipeline:
        alive = [
            sum(cell % before.pipeline == stage for cell in alive_cells)
            for stage in range(before.pipeline)
        ]
        need = [max(after.data - count, 0) for count in alive]
        if not any(need):
            return times.regroup(after, Kind.REMOVE) + profile.process_ms
        cost = times.stage_send(before.pipeline)
        one = max(c for c, n in zip(cost, need, strict=True) if n)
        lost = sum(
            c
            for stage, (c, n) in enumerate(zip(cost, need, strict=True))
            if n and (n == after.data or (stage == before.pipeline - 1 and n == after.data - 1))
        )
        return float(max(one, lost)) + restart
    copies = max(times.stage_send(after.pipeline)) if after.data > 1 else 0.0
    return float(times.send(_last_lacks(profile, before, alive_cells, after)) + copies) + restart


def _last_lacks(profile: ModelProfile, before: Grid, free: list[int], after: Grid) -> float:
    if before == NOTHING:
        return 0.0
    sizes = profile.layer_parameters
    old = stage_starts(len(sizes), before.pipeline)
    new = stage_starts(len(sizes), after.pipeline)
    lacks = 0.0
    for stage in range(after.pipeline):
        if not free:
            break
        wanted = set(range(new[stage], new[stage + 1]))

        def lacking(cell: int, wanted: Set[int] = frozenset(wanted)) -> int:
            held = cell % before.pipeline
            return sum(sizes[k] for k in wanted - set(range(old[held], old[held + 1])))

        cell = min(free, key=lambda cell: (lacking(cell), cell))
        lacks = lacking(cell) * profile.state_bytes_per_parameter
        free = [other for other in free if other != cell]
    return lacks
