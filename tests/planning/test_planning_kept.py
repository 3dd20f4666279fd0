"""What the planner keeps between requests: the same answers, within bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning_helpers import make_profile

from parcae_api.planning import MOST_WORKERS, PlanRequest
from parcae_api.profile import Profile
from parcae_optimizer.kept import keeping, kept
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.lottery import Floats
from parcae_optimizer.measured import MeasuredRules
from parcae_optimizer.rules import NOTHING, Grid
from parcae_optimizer.tables import KEPT_BYTES, CostTables
from parcae_predictor import predictor_of

PROFILE = make_profile([0.1, 0.3, 0.2, 0.1], param_bytes=10**7, state_bytes=3 * 10**7)
RULES = MeasuredRules.of(PlanRequest(profile=PROFILE, num_workers=8), 8)
GRIDS = RULES.grids(8)


def test_the_longest_unused_goes_first_when_the_bytes_are_used_up() -> None:
    cache = kept(90_000)
    for number in range(3):
        cache[number] = np.zeros(4_000)
        assert cache[0].size  # asked for, so the newest
    assert list(cache) == [0, 2]
    assert cache.currsize <= 90_000


def test_what_is_larger_than_all_is_worked_out_each_time() -> None:
    asked = []

    @keeping(1_000)
    def zeros(size: int) -> Floats:
        asked.append(size)
        return np.zeros(size)

    for _ in range(2):
        assert len(zeros(10)) == 10
        assert len(zeros(1_000)) == 1_000
    assert asked == [10, 1_000, 1_000]


def test_threads_that_ask_at_once_get_the_same() -> None:
    @keeping(20_000)
    def squares(size: int) -> Floats:
        return np.arange(size, dtype=np.float64) ** 2

    wrong: list[int] = []

    def ask(seed: int) -> None:
        for size in np.random.default_rng(seed).integers(1, 200, 2_000):
            if len(squares(int(size))) != size:
                wrong.append(int(size))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@given(
    st.lists(
        st.tuples(
            st.integers(1, 8),
            st.sampled_from((NOTHING, *GRIDS)),
            st.lists(st.sampled_from((NOTHING, *GRIDS)), unique=True, max_size=6),
        ),
        max_size=8,
    ),
    st.sampled_from([1_500, KEPT_BYTES]),
)
def test_rows_are_what_the_rules_say_in_whatever_order_they_are_asked(
    questions: Sequence[tuple[int, Grid, list[Grid]]], most_bytes: int
) -> None:
    tables = CostTables(RULES, 8, rows=kept(most_bytes))
    for instances, before, after in questions:
        found = tables.rows(instances, before, 2, after)
        assert found.shape == (3, len(after))
        if after and before.workers <= instances:
            for removed in range(3):
                told = RULES.change_seconds(instances, before, min(removed, instances), after)
                assert found[removed] == pytest.approx(told)


def test_tables_that_share_a_place_do_not_mix_their_rows() -> None:
    slow = make_profile([0.1] * 4, state_bytes=10**9)
    others = MeasuredRules.of(PlanRequest(profile=slow, num_workers=8), 8)
    rows = kept(KEPT_BYTES)
    ours, theirs = CostTables(RULES, 8, rows=rows), CostTables(others, 8, rows=rows)
    question = (8, Grid(2, 2), 1, [Grid(2, 4)])
    assert ours.rows(*question) == pytest.approx(CostTables(RULES, 8).rows(*question))
    assert theirs.rows(*question) == pytest.approx(CostTables(others, 8).rows(*question))
    assert theirs.rows(*question)[0, 0] > 2 * ours.rows(*question)[0, 0]


def test_jobs_that_take_turns_do_not_forget_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Profile] = []
    build = MeasuredRules.of

    def counted(request: PlanRequest, most_workers: int) -> MeasuredRules:
        built.append(request.profile)
        return build(request, most_workers)

    monkeypatch.setattr(MeasuredRules, "of", counted)
    planner = LiveputPlanner(predictor_of("persistence"))
    profiles = [make_profile([0.1 * (job + 1)] * 6) for job in range(20)]
    for _ in range(3):
        for profile in profiles:
            planner.plan(PlanRequest(profile=profile, num_workers=7, capacity=8))
    assert built == profiles


def test_the_largest_requests_take_bounded_memory() -> None:
    planner = LiveputPlanner(predictor_of("persistence"))
    profile = make_profile([0.001] * 4096, state_bytes=24 * 10**6, micro_batches=MOST_WORKERS)
    for workers in (MOST_WORKERS, MOST_WORKERS - 100):
        answer = planner.plan(PlanRequest(profile=profile, num_workers=workers))
        assert answer.layout is not None
    assert 0 < planner.rows_bytes < 20 * 10**6  # rows of all layouts would have 700 MB


def test_a_model_is_weighed_by_its_layers_too() -> None:
    """Few instances have few layouts; what tells models apart is as long as they are."""
    planner = LiveputPlanner(predictor_of("persistence"))
    for number in range(40):
        profile = make_profile([0.001 + number] * 1_000)
        planner.plan(PlanRequest(profile=profile, num_workers=2))
    assert len(planner._known) < 31
