"""A reference without foresight: the best there is for the law of the very stretch replayed.

Every interval of the replayed stretch is taken as an independent draw of the pairs (added,
removed) that the stretch consists of. For that law the stochastic programme is solved up to the
stretch's end. So this policy knows how often what happens and how long it goes on, but not when:
under its law no policy that lacks foresight is expected to train more, with the layouts that
planners look at. On the one recorded path another may, as recordings have runs that the law has
not, and as anybody may be lucky.
"""

from __future__ import annotations

import numpy as np

from parcae_optimizer.programme import Outcomes, Programme, outcomes_of
from parcae_optimizer.rules import NOTHING, Grid, Rules
from parcae_optimizer.tables import CostTables
from parcae_simulator.engine import Timing, View
from parcae_simulator.ours import pauses_of
from parcae_simulator.scenario import Scenario

LONGEST = 60
"""Intervals planned ahead: what comes later no longer changes a decision."""
_MOST_OUTCOMES = 24
_MOST_GRIDS = 64


class Causal:
    """Solves the programme once, and looks up."""

    def __init__(
        self, rules: Rules, tables: CostTables, scenario: Scenario, timing: Timing
    ) -> None:
        self._rules = rules
        self._scenario = scenario
        self._intervals = min(LONGEST, scenario.stop - scenario.first)
        self._programme = Programme(
            rules=rules,
            tables=tables,
            interval_seconds=scenario.interval_s,
            outcomes=[law_of(scenario)] * self._intervals,
            least=0,
            most=scenario.capacity,
            most_grids=_MOST_GRIDS,
            ahead=timing is Timing.BEFORE,
        )

    def decide(self, view: View) -> Grid:
        """See ``Policy``."""
        programme = self._programme
        programme.current = view.layout
        left = self._scenario.stop - view.index
        if view.event is None:
            elapsed = max(0, self._intervals - left)
            return programme.decide_ahead(view.now, view.owed_s, elapsed).chosen.grid
        pauses = pauses_of(self._rules, view, programme.grids)
        elapsed = max(0, self._intervals - (left - 1))
        return programme.decide(view.now, pauses, elapsed, carried=True).chosen.grid

    @property
    def note(self) -> str:
        """What no causal policy is expected to pass, where the whole stretch is planned."""
        if self._intervals < self._scenario.stop - self._scenario.first:
            return ""
        expected = self._programme.expected(self._scenario.before, NOTHING)
        return f"expected under its law: {expected:.0f}"


def law_of(scenario: Scenario) -> Outcomes:
    """The pairs (removed, added) of the stretch, each as frequent as in it."""
    events = [scenario.event(index) for index in range(scenario.first, scenario.stop)]
    added, removed = np.array(events or [(0, 0)], dtype=np.int64).T
    return outcomes_of(removed, added, _MOST_OUTCOMES)
