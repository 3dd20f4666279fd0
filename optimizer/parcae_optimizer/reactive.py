"""The reactive planner: the layout with the highest predicted throughput, right now.

It looks at nothing but the workers that stay. It is what the operator falls back to without a
forecast, and what the liveput planner has to beat.
"""

from __future__ import annotations

from parcae_api.planning import PlanAnswer, PlanRequest
from parcae_optimizer.layouts import (
    KEEP_WITHIN,
    Candidate,
    candidates,
    has_speeds,
    kept_text,
    speed_text,
    why_none,
    workers_text,
)


class ReactivePlanner:
    """See the module."""

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``."""
        ranked = sorted(candidates(request), key=_rank)
        if not ranked:
            return PlanAnswer(layout=None, why=why_none(request))
        best = ranked[0]
        current = _current(request, ranked)
        chosen = best
        if current and current.samples_per_second >= (1 - KEEP_WITHIN) * best.samples_per_second:
            chosen = current
        others = [c for c in ranked if _name(c) != _name(chosen)]
        return PlanAnswer(
            layout=chosen.layout,
            samples_per_second=chosen.samples_per_second,
            ideal_samples_per_second=best.samples_per_second if has_speeds(request) else None,
            runner_up=_name(others[0]) if others else "",
            why=_why(request, chosen, others),
        )


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
    spare = request.num_workers - chosen.layout.configuration.workers
    known = has_speeds(request)
    speed = f"{speed_text(chosen.samples_per_second)} samples/s predicted"
    by_size = "by the sizes of the layers, until they are measured"
    parts = [f"{_name(chosen)} on {workers_text(request)}: {speed if known else by_size}"]
    if others:
        value = f" with {speed_text(others[0].samples_per_second)}" if known else ""
        other = f"{_name(others[0])}{value}"
        is_best = _rank(chosen) < _rank(others[0])
        parts.append(f"next best {other}" if is_best else kept_text(other))
    if spare:
        parts.append(f"{spare} spare")
    return ", ".join(parts)
