"""The reactive planner: the layout with the highest predicted throughput, right now.

It looks at nothing but the workers that stay. It is what the operator falls back to without a
forecast, and what the liveput planner has to beat.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from parcae_api.plan import Configuration, Layout
from parcae_api.planning import PlanAnswer, PlanRequest
from parcae_optimizer.cost import layer_seconds, peak_bytes, step_seconds
from parcae_optimizer.partition import even_split, partition

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
    for p in range(request.pipeline.min_stages, deepest + 1):
        boundaries = _boundaries(request, seconds, p)
        for d in range(1, min(request.num_workers // p, profile.num_micro_batches) + 1):
            layout = Layout(
                configuration=Configuration(data=d, pipeline=p),
                boundaries=boundaries,
                micro_batches=even_split(profile.num_micro_batches, d),
            )
            memory = request.worker_memory_bytes
            if memory and any(peak_bytes(layout, profile, s) > memory for s in range(p)):
                continue
            speed = profile.global_batch_samples / step_seconds(layout, profile, seconds)
            yield Candidate(layout, speed)


def _boundaries(request: PlanRequest, seconds: list[float], p: int) -> tuple[int, ...]:
    """The best cut, or today's where that is nearly as good: a moved boundary moves state."""
    best = partition(seconds, p)
    current = request.current
    if current is None or current.configuration.pipeline != p:
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
    parts = [f"{_name(chosen)} on {request.num_workers} workers: {speed}"]
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
        return f"{request.num_workers} workers are fewer than the {least} stages asked for"
    return f"the model's state does not fit on {request.num_workers} workers"
