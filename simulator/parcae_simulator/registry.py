"""Policies by name. A new one is one line here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parcae_api.errors import InputError
from parcae_optimizer.rules import Rules
from parcae_optimizer.tables import CostTables
from parcae_predictor import HazardPredictor
from parcae_predictor.prior import load_prior
from parcae_simulator.baselines.bamboo import Bamboo
from parcae_simulator.baselines.common import Baseline
from parcae_simulator.baselines.oobleck import Oobleck, OobleckJoins
from parcae_simulator.baselines.torchft import Torchft
from parcae_simulator.baselines.torchrun import Torchrun
from parcae_simulator.baselines.varuna import Varuna
from parcae_simulator.causal import Causal
from parcae_simulator.engine import Policy, Timing
from parcae_simulator.models import Model
from parcae_simulator.ours import Ours
from parcae_simulator.planned import KnownFuture, NoChange, Planned, PublishedForecast
from parcae_simulator.published_planner import PublishedPlanner
from parcae_simulator.scenario import Scenario


@dataclass(frozen=True)
class Desk:
    """What a planning policy is built from, for one replay."""

    model: Model
    rules: Rules
    planner: PublishedPlanner
    """Of these rules; it remembers what it worked out for other replays."""
    tables: CostTables
    """Likewise."""
    scenario: Scenario
    """Policies that do not know the future look at its capacity and interval only, ``causal`` also
    at how often what happens."""
    timing: Timing


PolicyFactory = Callable[[Desk], Policy]


def _known(desk: Desk) -> Policy:
    return Planned(desk.planner, KnownFuture(desk.scenario))


def _causal(desk: Desk) -> Policy:
    return Causal(desk.rules, desk.tables, desk.scenario, desk.timing)


def _published(desk: Desk) -> Policy:
    # Without the random removals, which is their most common value: the published figures.
    floor = desk.model.published.stages.min if desk.model.published else 1
    outlook = PublishedForecast(desk.scenario.capacity, least_instances=floor)
    return Planned(desk.planner, outlook)


def _nochange(desk: Desk) -> Policy:
    return Planned(desk.planner, NoChange())


def _parcae(desk: Desk) -> Policy:
    # The forecaster's prior comes from recordings: not from the one that is replayed.
    predictor = HazardPredictor(load_prior(desk.scenario.akin))
    return Ours(desk.rules, desk.tables, desk.scenario.interval_s, predictor)


PLANNED: dict[str, PolicyFactory] = {
    "parcae": _parcae,
    "known": _known,
    "causal": _causal,
    "published": _published,
    "nochange": _nochange,
}
"""Policies that name a layout in each interval and pay by the rules."""

CLAIRVOYANT = frozenset({"known"})
"""Decide with the event and the future known, whatever the timing."""

SYSTEMS: dict[str, type[Baseline]] = {
    system.name: system for system in (Varuna, Bamboo, Oobleck, OobleckJoins, Torchrun, Torchft)
}
"""Other systems; they pay by their own rules."""

NAMES = ("ideal", *PLANNED, "reactive", *SYSTEMS, "ondemand")


def restarting(names: Sequence[str]) -> tuple[str, ...]:
    """Of these, the policies that restart: they need times that only published profiles have."""
    return tuple(name for name in names if name == "reactive" or name in SYSTEMS)


def times_missing(names: Sequence[str], model: Model) -> InputError:
    """That a recorded profile cannot serve these policies."""
    return InputError(
        f"policy {', '.join(names)} needs restart times, which the recorded profile {model.name} "
        f"does not have; give some of ideal, {', '.join(PLANNED)}, ondemand"
    )


def check_policies(text: str) -> tuple[str, ...]:
    """Names separated by commas, or ``all``.

    Raises:
        InputError: a name is unknown.
    """
    if text.strip() == "all":
        return NAMES
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = next((name for name in names if name not in NAMES), None)
    if unknown is not None or not names:
        raise InputError(
            f"policy {unknown or text!r} is unknown; give all, or some of {', '.join(NAMES)}"
        )
    return names
