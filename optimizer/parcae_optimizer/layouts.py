"""The feasible layouts of a request: every configuration with its best partition and speed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from parcae_api.plan import Configuration, Layout
from parcae_api.planning import PlanRequest
from parcae_api.profile import Profile
from parcae_optimizer.cost import Costs, is_measured, layer_bytes, layer_seconds
from parcae_optimizer.partition import even_split, partitions
from parcae_optimizer.rules import Grid

KEEP_WITHIN = 0.08
"""A layout stays when it is predicted within this share of the best: measured times scatter by
more, and a move costs a pause."""

_NO_TABLE: dict[str, object] = {"samples_per_second": {}}
_SHORTEST_STEP_S = 1e-9
"""Of a model that costs nothing, as a profile may say."""


@dataclass(frozen=True)
class Candidate:
    """A feasible layout and its predicted speed."""

    layout: Layout
    samples_per_second: float

    @property
    def grid(self) -> Grid:
        """Its configuration."""
        configuration = self.layout.configuration
        return Grid(configuration.data, configuration.pipeline)


def candidates(request: PlanRequest) -> list[Candidate]:
    """Every feasible configuration with its best partition."""
    costs = Costs(request.profile)
    layouts = list(_feasible(request, costs))
    if request.samples_per_second:
        table = request.samples_per_second
        named = ((layout, str(layout.configuration)) for layout in layouts)
        return [Candidate(layout, table[name]) for layout, name in named if name in table]
    predicted = {
        str(layout.configuration): max(_SHORTEST_STEP_S, costs.step_seconds(layout))
        for layout in layouts
    }
    step = corrected(predicted, request.step_seconds)
    batch = request.profile.global_batch_samples
    return [Candidate(layout, batch / step[str(layout.configuration)]) for layout in layouts]


def corrected(predicted: Mapping[str, float], measured: Mapping[str, float]) -> dict[str, float]:
    """Steps as measured, and the others as predicted times the middle of the measured ratios.

    One odd measurement then moves nothing but its own configuration.
    """
    ratios = [measured[name] / predicted[name] for name in measured if name in predicted]
    scale = median(ratios) if ratios else 1.0
    return {name: measured.get(name, scale * step) for name, step in predicted.items()}


def _feasible(request: PlanRequest, costs: Costs) -> Iterator[Layout]:
    profile, seconds = request.profile, layer_seconds(request.profile)
    deepest = min(request.pipeline.max_stages, request.num_workers, len(profile.layers))
    if deepest < request.pipeline.min_stages:
        return
    fastest, lightest = partitions(seconds, deepest), _lightest(request, deepest)
    for p in range(request.pipeline.min_stages, deepest + 1):
        cuts = [_keep_or_move(request, seconds, fastest[p - 1])]
        # Where the fastest cut does not fit, one that spreads the bytes evenly may.
        cuts += [fastest[p - 1], *([lightest[p - 1]] if lightest else [])]
        for d in range(1, min(request.num_workers // p, profile.num_micro_batches) + 1):
            layout = next(
                (x for x in _layouts(profile, d, p, cuts) if _fits(x, request, costs)), None
            )
            if layout is not None:
                yield layout


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


def _fits(layout: Layout, request: PlanRequest, costs: Costs) -> bool:
    memory = request.worker_memory_bytes
    return memory is None or float(costs.peak_bytes(layout).max()) <= memory


def _keep_or_move(
    request: PlanRequest, seconds: Sequence[float], best: tuple[int, ...]
) -> tuple[int, ...]:
    """The best cut, or today's where that is nearly as good: a moved boundary moves state."""
    current = request.current
    if current is None or len(current.boundaries) != len(best):
        return best

    def slowest(cut: tuple[int, ...]) -> float:
        return max(sum(seconds[a:b]) for a, b in itertools.pairwise(cut))

    keep = slowest(current.boundaries) <= slowest(best) * (1 + KEEP_WITHIN)
    return current.boundaries if keep else best


def has_speeds(request: PlanRequest) -> bool:
    """Whether predicted speeds are samples per second; before any measurement they only rank."""
    return bool(request.samples_per_second or request.step_seconds) or is_measured(request.profile)


def why_none(request: PlanRequest) -> str:
    """Why no layout is feasible, in words a user understands."""
    least = request.pipeline.min_stages
    if least > len(request.profile.layers):
        return (
            f"pipeline.minStages is {least}, but the model has only "
            f"{len(request.profile.layers)} layers"
        )
    if request.num_workers < least:
        verb = "is" if request.num_workers == 1 else "are"
        return f"{workers_text(request)} {verb} fewer than pipeline.minStages ({least})"
    if request.samples_per_second and candidates(request.model_copy(update=_NO_TABLE)):
        return (
            f"samples_per_second has no layout that {workers_text(request)} can run; add one, or "
            "leave the table out"
        )
    return f"the model's state does not fit on {workers_text(request)}"


def workers_text(request: PlanRequest) -> str:
    """How many workers stay, with the right plural."""
    return "1 worker" if request.num_workers == 1 else f"{request.num_workers} workers"


def speed_text(samples_per_second: float) -> str:
    """A speed for people: whole samples, or two digits where there are few a second."""
    digits = ".0f" if samples_per_second >= 10 else ".2g"
    return f"{samples_per_second:{digits}}"


def kept_text(best: str) -> str:
    """Why today's layout stays, though ``best`` is ahead of it."""
    return f"kept as {best} is not ahead by enough to move"
