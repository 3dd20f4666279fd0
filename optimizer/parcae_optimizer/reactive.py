"""The reactive planner: the layout with the highest predicted throughput, right now.

It looks at nothing but the workers that stay. It is what the operator falls back to without a
forecast, and what the liveput planner has to beat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parcae_api.plan import Configuration, Layout
from parcae_api.planning import PlanAnswer, PlanRequest
from parcae_api.profile import Profile
from parcae_optimizer.cost import layer_bytes, layer_seconds, peak_bytes, step_seconds
from parcae_optimizer.partition import even_split, partitions

KEEP_WITHIN = 0.08
"""The current layout stays when it is predicted within this share of the best: measured times
scatter by more, and a move costs a pause."""


@dataclass(frozen=True)
class Candidate:
    """A feasible layout and its predicted speed."""

    layout: Layout
    samples_per_second: float


class ReactivePlanner:
    """See the module."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``."""
        ranked = sorted(candidates(request), key=_rank)
        if not ranked:
            return PlanAnswer(layout=None, why=_why_none(request))
        best = ranked[0]
        current = _current(request, ranked)
        chosen = best
        if current and current.samples_per_second >= (1 - KEEP_WITHIN) * best.samples_per_second:
            chosen = current
        others = [c for c in ranked if _name(c) != _name(chosen)]
        return PlanAnswer(
            layout=chosen.layout,
            samples_per_second=chosen.samples_per_second,
            runner_up=_name(others[0]) if others else "",
            why=_why(request, chosen, others),
        )


def candidates(request: PlanRequest) -> Iterator[Candidate]:
    """Every feasible configuration with its best partition."""
    profile = request.profile
    seconds = layer_seconds(profile)
    deepest = min(request.pipeline.max_stages, request.num_workers, len(profile.layers))
    if deepest < request.pipeline.min_stages:
        return
    fastest, lightest = partitions(seconds, deepest), _lightest(request, deepest)
    for p in range(request.pipeline.min_stages, deepest + 1):
        cuts = [_keep_or_move(request, seconds, fastest[p - 1])]
        # Where the fastest cut does not fit, one that spreads the bytes evenly may.
        cuts += [fastest[p - 1], *([lightest[p - 1]] if lightest else [])]
        for d in range(1, min(request.num_workers // p, profile.num_micro_batches) + 1):
            layout = next((x for x in _layouts(profile, d, p, cuts) if _fits(x, request)), None)
            if layout is not None:
                speed = profile.global_batch_samples / step_seconds(layout, profile, seconds)
                yield Candidate(layout, speed)


def _lightest(request: PlanRequest, deepest: int) -> list[tuple[int, ...]]:
    """The cuts with the smallest largest stage in bytes; only asked for where memory matters."""
    if request.worker_memory_bytes is None:
        return []
    return partitions([layer_bytes(layer) for layer in request.profile.layers], deepest)


def _layouts(profile: Profile, d: int, p: int, cuts: Sequence[tuple[int, ...]]) -> Iterator[Layout]:
    for boundaries in dict.fromkeys(cuts):
        yield Layout(
            configuration=Configuration(data=d, pipeline=p),
            boundaries=boundaries,
            micro_batches=even_split(profile.num_micro_batches, d),
        )


def _fits(layout: Layout, request: PlanRequest) -> bool:
    memory = request.worker_memory_bytes
    if memory is None:
        return True
    stages = range(layout.configuration.pipeline)
    return all(peak_bytes(layout, request.profile, stage) <= memory for stage in stages)


def _keep_or_move(
    request: PlanRequest, seconds: Sequence[float], best: tuple[int, ...]
) -> tuple[int, ...]:
    """The best cut, or today's where that is nearly as good: a moved boundary moves state."""
    current = request.current
    if current is None or len(current.boundaries) != len(best):
        return best
    if current.num_layers != len(seconds):
        return best

    def slowest(cut: tuple[int, ...]) -> float:
        return max(sum(seconds[a:b]) for a, b in itertools.pairwise(cut))

    keep = slowest(current.boundaries) <= slowest(best) * (1 + KEEP_WITHIN)
    return current.boundaries if keep else best


def _rank(candidate: Candidate) -> tuple[float, int, int]:
    """Fastest first; among equals more replicas, which survive more, then fewer workers."""
    configuration = candidate.layout.configuration
    return (
        -round(candidate.samples_per_second, 9),
        -configuration.data,
        configuration.workers,
    )


def _current(request: PlanRequest, ranked: list[Candidate]) -> Candidate | None:
    return next((c for c in ranked if c.layout == request.current), None)


def _name(candidate: Candidate) -> str:
    return str(candidate.layout.configuration)


def _why(request: PlanRequest, chosen: Candidate, others: list[Candidate]) -> str:
    speed = f"{chosen.samples_per_second:.0f} samples/s predicted"
    spare = request.num_workers - chosen.layout.configuration.workers
    parts = [f"{_name(chosen)} on {_workers(request)}: {speed}"]
    if others:
        parts.append(f"next best {_name(others[0])} with {others[0].samples_per_second:.0f}")
    if spare:
        parts.append(f"{spare} spare")
    return ", ".join(parts)


def _why_none(request: PlanRequest) -> str:
    least = request.pipeline.min_stages
    if least > len(request.profile.layers):
        return (
            f"pipeline.minStages is {least}, but the model has only "
            f"{len(request.profile.layers)} layers"
        )
    if request.num_workers < least:
        verb = "is" if request.num_workers == 1 else "are"
        return f"{_workers(request)} {verb} fewer than pipeline.minStages ({least})"
    return f"the model's state does not fit on {_workers(request)}"


def _workers(request: PlanRequest) -> str:
    return "1 worker" if request.num_workers == 1 else f"{request.num_workers} workers"
