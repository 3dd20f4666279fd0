"""The stochastic programme against trying everything out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_optimizer.programme import Outcomes, Programme, outcomes_of
from parcae_optimizer.rules import NOTHING, Floats, Grid
from parcae_optimizer.tables import CostTables

LENGTH_S = 60.0
GRIDS = (Grid(1, 1), Grid(1, 2), Grid(2, 1), Grid(3, 1))


@dataclass
class Invented:
    """Rules drawn from a seed; counts what it is asked."""

    seed: int = 0
    dear: float = 20.0
    speeds: dict[Grid, float] = field(default_factory=dict)
    asked: int = 0

    def grids(self, instances: int) -> Sequence[Grid]:
        return [g for g in GRIDS if g.workers <= instances]

    def speed(self, grid: Grid) -> float:
        if grid == NOTHING:
            return 0.0
        if grid in self.speeds:
            return self.speeds[grid]
        return 1.0 + grid.workers + np.random.default_rng([self.seed, *grid]).random()

    def change_seconds(
        self, instances: int, before: Grid, removed: int, after: Sequence[Grid]
    ) -> Floats:
        self.asked += 1
        return np.array([self.one(instances, before, removed, g) for g in after])

    def one(self, instances: int, before: Grid, removed: int, after: Grid) -> float:
        if after == NOTHING or (before == after and not removed):
            return 0.0
        draw = np.random.default_rng([self.seed, instances, *before, removed, *after])
        return self.dear * float(draw.random())

    def overlap_seconds(self, after: Grid) -> float:
        return 0.0


def certain(*changes: tuple[int, int]) -> list[Outcomes]:
    """Every interval brings exactly that (removed, added)."""
    return [outcomes_of(np.array([k]), np.array([j])) for k, j in changes]


def programme(
    rules: Invented,
    outcomes: list[Outcomes],
    *,
    current: Grid = NOTHING,
    least: int = 0,
    most: int = 4,
    ahead: bool = False,
) -> Programme:
    tables = CostTables(rules, most, slowest_share=0.0)
    return Programme(rules, tables, LENGTH_S, outcomes, least, most, current, ahead=ahead)


def best_by_trying(
    rules: Invented, grid: Grid, instances: int, outcomes: Sequence[Outcomes]
) -> float:
    """V of a state, by looking at every outcome and every choice."""
    if not outcomes:
        return 0.0
    total = 0.0
    first = outcomes[0]
    for k, j, p in zip(first.removed, first.added, first.probability, strict=True):
        removed = min(int(k), instances)
        n = min(instances - removed + int(j), 4)
        total += p * max(
            rules.speed(b) * (LENGTH_S - rules.one(instances, grid, removed, b))
            + best_by_trying(rules, b, n, outcomes[1:])
            for b in [NOTHING, *rules.grids(n)]
        )
    return total


@st.composite
def laws(draw: st.DrawFn) -> Outcomes:
    pairs = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6))
    return outcomes_of(np.array([k for k, _ in pairs]), np.array([j for _, j in pairs]))


@settings(max_examples=40)
@given(st.integers(0, 99), st.lists(laws(), min_size=1, max_size=3), st.integers(1, 4))
def test_values_are_those_of_trying_everything(
    seed: int, outcomes: list[Outcomes], instances: int
) -> None:
    rules = Invented(seed)
    search = programme(rules, outcomes)
    for i, grid in enumerate(search.grids):
        if grid.workers <= instances:
            found = search.values[0][instances, i]
            assert found == pytest.approx(best_by_trying(rules, grid, instances, outcomes))


@settings(max_examples=40)
@given(st.integers(0, 99), st.lists(laws(), min_size=1, max_size=2), st.integers(1, 4))
def test_a_decision_is_the_best_of_all(seed: int, outcomes: list[Outcomes], instances: int) -> None:
    rules = Invented(seed)
    search = programme(rules, outcomes, current=Grid(1, 1))
    pauses = np.array([rules.one(instances, Grid(1, 1), 0, g) for g in search.grids])
    decision = search.decide(instances, pauses)
    tried = {
        g: rules.speed(g) * (LENGTH_S - pause) + best_by_trying(rules, g, instances, outcomes)
        for g, pause in zip(search.grids, pauses, strict=True)
        if g.workers <= instances
    }
    assert decision.chosen.samples == pytest.approx(max(tried.values()))
    assert {c.grid for c in decision.ranking} == set(tried)
    assert decision.seconds == LENGTH_S * (1 + len(outcomes))


def test_ties_keep_todays_layout() -> None:
    rules = Invented(dear=0.0, speeds={g: 5.0 for g in GRIDS})
    for current in GRIDS:
        search = programme(rules, certain((0, 0), (0, 0)), current=current, least=4)
        assert search.decide(4, np.zeros(len(search.grids))).chosen.grid == current


def test_a_certain_loss_never_keeps_a_doomed_layout() -> None:
    """Two instances are sure to go: 3x1 would earn more for one interval and pay to shrink."""
    rules = Invented(dear=0.0, speeds={GRIDS[0]: 4.0, GRIDS[1]: 4.0, GRIDS[2]: 5.0, GRIDS[3]: 5.1})

    def one(instances: int, before: Grid, removed: int, after: Grid) -> float:
        return 0.0 if before == after or after == NOTHING else 30.0

    rules.one = one  # type: ignore[method-assign]
    search = programme(rules, certain((1, 0), (1, 0), (0, 0)), current=Grid(1, 1), least=1)
    pauses = np.array([one(3, Grid(1, 1), 0, g) for g in search.grids])
    assert search.decide(3, pauses).chosen.grid == Grid(1, 1)
    quiet = programme(rules, certain(*[(0, 0)] * 9), current=Grid(1, 1), least=1)
    assert quiet.decide(3, pauses).chosen.grid == Grid(3, 1)


@settings(max_examples=30)
@given(st.integers(0, 99), st.lists(laws(), min_size=1, max_size=3))
def test_more_instances_are_worth_no_less(seed: int, outcomes: list[Outcomes]) -> None:
    rules = Invented(seed, dear=0.0)
    values = programme(rules, outcomes).values[0]
    assert (np.diff(values.max(axis=1)) >= -1e-9).all()


def test_a_decision_ahead_weighs_what_will_be_left() -> None:
    """Chosen before the event: 3x1 would be clamped to what survives."""
    speeds = {GRIDS[0]: 4.0, GRIDS[1]: 3.0, GRIDS[2]: 7.0, GRIDS[3]: 9.0}
    rules = Invented(dear=0.0, speeds=speeds)
    search = programme(rules, certain((0, 0), (0, 0)), current=Grid(2, 1), least=1)
    assert search.decide_ahead(3).chosen.grid == Grid(3, 1)
    search = programme(rules, certain((2, 0), (0, 0)), current=Grid(2, 1), least=1)
    ranking = {c.grid: c.samples for c in search.decide_ahead(3).ranking}
    assert ranking[Grid(3, 1)] == pytest.approx(ranking[Grid(1, 1)])


def test_a_long_pause_may_be_broken_off() -> None:
    """Either takes 100 s, of which 40 are left; but from the slower one it is 5 s to the other."""
    rules = Invented(speeds={GRIDS[0]: 1.0, GRIDS[1]: 1.0, GRIDS[2]: 7.0, GRIDS[3]: 8.0})

    def one(instances: int, before: Grid, removed: int, after: Grid) -> float:
        return 0.0 if before == after or after == NOTHING else 300.0 if before == NOTHING else 5.0

    rules.one = one  # type: ignore[method-assign]
    search = programme(rules, certain((0, 0)), current=Grid(2, 1), least=1)
    pauses = np.where([g.data > 1 for g in search.grids], 100.0, 900.0)
    served = search.decide(3, pauses).chosen
    assert served.samples == pytest.approx(8.0 * (120 - 100))
    broken = search.decide(3, pauses, carried=True).chosen
    assert (broken.grid, broken.samples) == (Grid(2, 1), pytest.approx(8.0 * (60 - 5)))


def test_a_choice_ahead_may_wait_for_joiners() -> None:
    """Two are sure to come: 3x1 is chosen on one instance, and on three without a delay."""
    speeds = {GRIDS[0]: 4.0, GRIDS[1]: 3.0, GRIDS[2]: 7.0, GRIDS[3]: 9.0}
    rules = Invented(dear=0.0, speeds=speeds)
    search = programme(rules, certain((0, 2)), current=Grid(1, 1), least=1, ahead=True)
    chosen = search.decide_ahead(1).chosen
    assert chosen.grid == Grid(3, 1)
    assert chosen.samples == pytest.approx(9.0 * LENGTH_S)


def test_a_layout_that_one_outcome_forbids_does_not_make_the_others_equal() -> None:
    """As below a model's memory floor: an idle 1x1 that two instances may not have."""
    rules = Invented(dear=0.0, speeds={GRIDS[0]: 0.0, GRIDS[1]: 9.0})
    rules.grids = lambda instances: [GRIDS[min(instances, 2) - 1]]  # type: ignore[method-assign]
    law = outcomes_of(np.zeros(10, dtype=np.int64), np.array([1] + [0] * 9))
    search = Programme(
        rules, CostTables(rules, 2, slowest_share=0.0), LENGTH_S, [law], 1, 2, GRIDS[0], ahead=True
    )
    decision = search.decide_ahead(1)
    assert decision.chosen.grid == GRIDS[1]
    assert decision.chosen.samples == pytest.approx(0.1 * 9.0 * LENGTH_S)
    assert GRIDS[0] not in {choice.grid for choice in decision.ranking}


def ahead_by_trying(
    rules: Invented, grid: Grid, instances: int, outcomes: Sequence[Outcomes]
) -> float:
    """V of a state where choices come before events, by looking at every one of both."""
    if not outcomes:
        return 0.0
    first = outcomes[0]
    tried = []
    for choice in [NOTHING, *GRIDS]:
        total = 0.0
        for k, j, p in zip(first.removed, first.added, first.probability, strict=True):
            removed = min(int(k), instances)
            n = min(instances - removed + int(j), 4)
            left = choice if choice.workers <= n else Grid(n // choice.pipeline, choice.pipeline)
            if not left.data and choice != NOTHING:
                left = Grid(1, n) if n else NOTHING
            pause = rules.one(instances, grid, removed, left)
            gain = rules.speed(left) * (LENGTH_S - pause)
            total += p * (gain + ahead_by_trying(rules, left, n, outcomes[1:]))
        tried.append(total)
    return max(tried)


@settings(max_examples=15)
@given(st.integers(0, 99), st.lists(laws(), min_size=1, max_size=2), st.integers(1, 4))
def test_values_ahead_are_those_of_trying_everything(
    seed: int, outcomes: list[Outcomes], instances: int
) -> None:
    rules = Invented(seed)
    outcomes = [*outcomes, outcomes[0]][:2]  # laws may be shared
    search = programme(rules, outcomes, ahead=True)
    for i, grid in enumerate(search.grids):
        if grid.workers <= instances:
            tried = ahead_by_trying(rules, grid, instances, outcomes)
            assert search.values[0][instances, i] == pytest.approx(tried)
            assert search.expected(instances, grid) == search.values[0][instances, i]
    search.current = Grid(1, 1)
    tried = ahead_by_trying(rules, Grid(1, 1), instances, outcomes)
    assert search.decide_ahead(instances).chosen.samples == pytest.approx(tried)


def test_rare_outcomes_count_as_their_nearest() -> None:
    removed = np.array([0] * 10 + [1] * 5 + [7])
    law = outcomes_of(removed, np.zeros(16, dtype=int), most=2)
    assert list(law.removed) == [0, 1]
    assert law.probability == pytest.approx([10 / 16, 6 / 16])


def test_tables_are_asked_once() -> None:
    rules = Invented()
    tables = CostTables(rules, 4, slowest_share=0.0)
    for _ in range(3):
        search = Programme(rules, tables, LENGTH_S, certain((1, 0)), 1, 4, Grid(1, 1))
        search.decide(4, np.zeros(len(search.grids)))
    asked = rules.asked
    Programme(rules, tables, LENGTH_S, certain((1, 1)), 1, 4, Grid(1, 1)).values  # noqa: B018
    assert rules.asked == asked


def test_slow_layouts_are_not_looked_at() -> None:
    rules = Invented(speeds={GRIDS[0]: 4.0, GRIDS[1]: 1.0, GRIDS[2]: 8.0, GRIDS[3]: 9.0})
    assert Grid(1, 2) not in CostTables(rules, 4).universe
    search = Programme(rules, CostTables(rules, 4), LENGTH_S, certain((0, 0)), 1, 4, Grid(1, 2))
    assert Grid(1, 2) in search.grids  # but today's is
    assert search.decide(4, np.zeros(len(search.grids))).chosen.grid == Grid(3, 1)


def test_with_no_layout_in_reach_it_holds_nothing() -> None:
    rules = Invented()
    search = programme(rules, certain((0, 0)), least=0, most=0)
    assert search.decide(0, np.zeros(len(search.grids))).chosen.grid == NOTHING
