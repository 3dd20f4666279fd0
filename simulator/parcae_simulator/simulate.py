"""One cell of a comparison: all wanted policies on one model and one scenario."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace

from parcae_optimizer.rules import Rules
from parcae_optimizer.tables import CostTables
from parcae_simulator.baselines.common import (
    NUM_DRAWS,
    Baseline,
    Notices,
    Setting,
    Store,
    replay_baseline,
)
from parcae_simulator.bounds import ideal, on_demand
from parcae_simulator.causal import Causal
from parcae_simulator.engine import Timing, replay
from parcae_simulator.models import Model, RuleSet
from parcae_simulator.outcome import Outcome
from parcae_simulator.published_planner import PublishedPlanner
from parcae_simulator.reactive import replay_reactive
from parcae_simulator.registry import CLAIRVOYANT, NAMES, PLANNED, SYSTEMS, Desk, times_missing
from parcae_simulator.scenario import Scenario


@dataclass(frozen=True)
class Options:
    """Variants to run."""

    rules: RuleSet = RuleSet.PUBLISHED
    policies: tuple[str, ...] = NAMES
    timings: tuple[Timing, ...] = (Timing.SEEN, Timing.BEFORE)
    notices: tuple[Notices, ...] = (Notices.NOTICED,)
    stores: tuple[Store, ...] = (Store.SERIAL, Store.PARALLEL)
    draws: int = NUM_DRAWS
    """Of who vanishes, for the systems that draw."""
    spot_share: float = 0.3
    """Spot price over on-demand price."""


@dataclass(frozen=True)
class _Planning:
    """Rules, and what planners have worked out under them."""

    rules: Rules
    planner: PublishedPlanner
    tables: CostTables


@dataclass
class Bench:
    """A model under rules; what it worked out for one scenario serves the next."""

    model: Model
    options: Options
    capacity: int
    _built: dict[tuple[bool, bool, float], _Planning] = field(default_factory=dict)

    def outcomes(self, scenario: Scenario) -> list[Outcome]:
        """Every wanted policy in its variants, in the order of their names.

        Raises:
            InputError: a policy needs what the model's profile does not tell.
        """
        found: list[Outcome] = []
        for name in self.options.policies:
            found += self._outcomes(name, scenario)
        return found

    def ideal(self, scenario: Scenario) -> Outcome:
        """What is possible without costs."""
        return ideal(self._rules(scenario).rules, scenario)

    def _outcomes(self, name: str, scenario: Scenario) -> list[Outcome]:
        if name in PLANNED:
            return list(self._planned(name, scenario))
        if name == "ideal":
            return [self.ideal(scenario)]
        if name == "ondemand":
            return on_demand(self._rules(scenario).rules, scenario, self.options.spot_share)
        profile = self.model.published
        if profile is None:
            raise times_missing([name], self.model)
        if name == "reactive":
            return [replay_reactive(profile, scenario)]
        system = SYSTEMS[name]
        return [
            replay_baseline(system, Setting(profile, scenario, notices, store), self.options.draws)
            for notices, store in self._variants(system)
        ]

    def _planned(self, name: str, scenario: Scenario) -> Iterator[Outcome]:
        timings = (Timing.SEEN,) if name in CLAIRVOYANT else self.options.timings
        for notices, store in self._rule_variants():
            known = self._rules(scenario, notices is Notices.SUDDEN, store is Store.SERIAL)
            for timing in timings:
                desk = Desk(self.model, known.rules, known.planner, known.tables, scenario, timing)
                policy = PLANNED[name](desk)
                found = replay(name, policy, known.rules, scenario, timing)
                yield dataclass_replace(
                    found,
                    notices=notices.value if notices else "",
                    store=store.value if store else "",
                    note=policy.note if isinstance(policy, Causal) else "",
                )

    def _rule_variants(self) -> Iterator[tuple[Notices | None, Store | None]]:
        """Notices and stores that make a difference to planners.

        The published rules charge no rollback, and who is warned never reads a checkpoint.
        """
        if self.options.rules is RuleSet.PUBLISHED or self.model.published is None:
            yield None, None
            return
        if Notices.NOTICED in self.options.notices:
            yield Notices.NOTICED, None
        if Notices.SUDDEN in self.options.notices:
            for store in self.options.stores:
                yield Notices.SUDDEN, store

    def _variants(self, system: type[Baseline]) -> Iterator[tuple[Notices, Store]]:
        for notices in self.options.notices if system.heeds_notices else (Notices.SUDDEN,):
            for store in self.options.stores if system.heeds_store else (Store.PARALLEL,):
                yield notices, store

    def _rules(
        self, scenario: Scenario, sudden: bool = False, serial_store: bool = False
    ) -> _Planning:
        key = (sudden, serial_store, scenario.interval_s)
        if (known := self._built.get(key)) is None:
            rules = self.model.rules(
                self.options.rules, self.capacity, sudden=sudden, serial_store=serial_store
            )
            known = self._built[key] = _Planning(
                rules,
                PublishedPlanner(rules, scenario.interval_s),
                CostTables(rules, self.capacity, cuts=True),
            )
        return known
