"""Counting instances per interval, and learning from what training itself measures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from control_world import World, make_layout, make_profile
from hypothesis import given
from hypothesis import strategies as st

from parcae_api.events import Migration, MigrationKind
from parcae_api.history import History, IntervalCounts
from parcae_api.job import Checkpoint
from parcae_api.plan import Plan, PlanReason
from parcae_api.planning import MOST_ROLLBACK_SECONDS, PlanAnswer, PlanRequest
from parcae_api.progress import Progress
from parcae_operator.availability import INTERVALS_KEPT, Availability
from parcae_operator.learning import Learnt
from parcae_operator.replan import choose
from parcae_optimizer.reactive import ReactivePlanner


def counts(history: History) -> list[tuple[int, int, int]]:
    return [(i.available, i.added, i.removed) for i in history.intervals]


def there(names: str) -> frozenset[str]:
    return frozenset(names)


class TestAvailability:
    def test_what_came_and_went_within_an_interval_counts_both_ways(self) -> None:
        seen = Availability(60.0, 1000.0, None)
        assert not seen.saw(1001.0, there("ab"))
        assert not seen.saw(1010.0, there("abc"))
        assert not seen.saw(1020.0, there("b"))
        assert seen.saw(1060.0, there("b"))
        assert seen.saw(1125.0, there("bd"))
        assert counts(seen.history) == [(1, 3, 2), (1, 0, 0)]
        assert seen.saw(1180.0, there("bd"))
        assert counts(seen.history)[-1] == (2, 1, 0)

    def test_one_replaced_by_another_is_a_loss_and_a_join(self) -> None:
        seen = Availability(60.0, 0.0, None)
        seen.saw(1.0, there("ab"))
        seen.saw(61.0, there("ab"))
        seen.saw(62.0, there("ac"))
        seen.saw(121.0, there("ac"))
        assert counts(seen.history) == [(2, 2, 0), (2, 1, 1)]

    def test_an_operator_that_returns_goes_on_where_the_last_one_stopped(self) -> None:
        first = Availability(60.0, 0.0, None)
        first.saw(1.0, there("abc"))
        first.saw(60.0, there("abc"))
        again = Availability(60.0, 200.0, first.history)
        again.saw(200.0, there("xy"))
        again.saw(250.0, there("xy"))
        assert counts(again.history) == [(3, 3, 0), (3, 0, 0), (3, 0, 0), (2, 0, 1)]
        assert [i.start_unix_s for i in again.history.intervals] == [0.0, 60.0, 120.0, 180.0]

    def test_a_history_of_another_clock_is_dropped(self) -> None:
        old = Availability(2.0, 0.0, None)
        old.saw(0.5, there("a"))
        old.saw(2.5, there("a"))
        assert counts(Availability(60.0, 10.0, old.history).history) == []

    def test_a_clock_that_jumps_does_not_fill_the_board(self) -> None:
        seen = Availability(60.0, 0.0, None)
        seen.saw(1.0, there("a"))
        assert seen.saw(1e12, there("a"))
        assert len(seen.history.intervals) == INTERVALS_KEPT
        assert seen.history.intervals[-1].start_unix_s + 120.0 >= 1e12

    @given(st.lists(st.tuples(st.floats(0, 200), st.frozensets(st.sampled_from("abcdef")))))
    def test_counts_always_add_up(self, looks: list[tuple[float, frozenset[str]]]) -> None:
        seen, now = Availability(60.0, 0.0, None), 0.0
        for wait, instances in looks:
            now += wait
            seen.saw(now, instances)
        again = History.from_json(seen.history.to_json())  # the contract checks the sums
        assert again == seen.history


def test_a_history_must_add_up() -> None:
    rows = [(2, 2, 0), (4, 1, 0)]
    intervals = [
        IntervalCounts(start_unix_s=60.0 * i, available=n, added=a, removed=r)
        for i, (n, a, r) in enumerate(rows)
    ]
    with pytest.raises(ValueError, match=r"intervals\[1\] has 4 available, but 2 before it"):
        History(interval_s=60.0, intervals=tuple(intervals))


def a_plan(revision: int = 1) -> Plan:
    return Plan(
        revision=revision,
        reason=PlanReason.INITIAL,
        why="",
        created_unix_s=0.0,
        layout=make_layout(2, 1, 3),
        grid=(("a/0",), ("b/0",)),
    )


def progress(step: int, seconds: float | None, revision: int = 1) -> Progress:
    return Progress(revision=revision, step=step, samples=0, step_seconds=seconds)


def migration(**change: object) -> Migration:
    told: dict[str, object] = {
        "at_unix_s": 0.0,
        "revision": 2,
        "kind": MigrationKind.INTER_STAGE,
        "reason": PlanReason.JOIN,
        "resumed_step": 3,
        "bytes_moved": 20_000_000,
        "pause_seconds": 0.3,
        "transfer_seconds": 0.1,
        "steps_replayed": 0,
        "sudden": False,
    }
    return Migration.model_validate({**told, **change})


class TestLearnt:
    def test_steps_are_remembered_by_configuration(self) -> None:
        learnt = Learnt()
        learnt.saw_progress(progress(1, 0.5), a_plan())
        assert learnt.step_seconds == {"2x1": 0.5}
        learnt.saw_progress(progress(1, 9.9), a_plan())  # the same report again
        assert learnt.step_seconds == {"2x1": 0.5}
        learnt.saw_progress(progress(2, 0.6), a_plan())
        assert learnt.step_seconds == {"2x1": 0.53}

    def test_reports_of_another_plan_or_without_a_time_teach_nothing(self) -> None:
        learnt = Learnt()
        learnt.saw_progress(progress(1, 0.5), a_plan(revision=2))
        learnt.saw_progress(progress(1, None), a_plan())
        learnt.saw_progress(None, a_plan())
        learnt.saw_progress(progress(1, 0.5), None)
        assert learnt.step_seconds == {}

    def test_changes_teach_what_they_cost(self) -> None:
        learnt, profile = Learnt(), make_profile(3)
        assert learnt.corrected(profile) == profile
        learnt.saw_migration(migration())
        corrected = learnt.corrected(profile)
        assert corrected.regroup_seconds == pytest.approx(0.2)
        assert corrected.bandwidth_bytes_per_s == pytest.approx(2e8)

    def test_a_sudden_loss_and_small_messages_do_not(self) -> None:
        learnt, profile = Learnt(), make_profile(3)
        learnt.saw_migration(migration(sudden=True))
        learnt.saw_migration(migration(steps_replayed=1))
        assert learnt.corrected(profile) == profile
        learnt.saw_migration(migration(bytes_moved=1000))
        assert learnt.corrected(profile).bandwidth_bytes_per_s == profile.bandwidth_bytes_per_s


class Spy:
    """A planner that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[PlanRequest] = []

    def plan(self, request: PlanRequest) -> PlanAnswer:
        self.asked.append(request)
        return ReactivePlanner().plan(request)


class TestQuestion:
    def test_it_says_who_is_left_and_what_a_rollback_costs(self) -> None:
        world, spy = World().training(2, 2, "a", "b", "c", "d").lose("b"), Spy()
        assert world.progress is not None
        world.progress = world.progress.model_copy(update={"step_seconds": 0.513})
        choose(world.observe(), spy)
        (request,) = spy.asked
        assert request.replicas_left == (2, 1)
        assert request.capacity == 4
        assert request.rollback_seconds == 10.0  # half of 50 steps, to one digit

    def test_a_layout_of_other_layers_is_not_todays(self) -> None:
        world, spy = World().training(2, 1, "a", "b"), Spy()
        choose(replace(world.observe(), profile=make_profile(9)), spy)
        (request,) = spy.asked
        assert (request.current, request.replicas_left) == (None, None)

    def test_no_checkpoint_interval_is_too_long_to_plan(self) -> None:
        world, spy = World().training(2, 1, "a", "b"), Spy()
        assert world.progress is not None
        world.progress = world.progress.model_copy(update={"step_seconds": 100.0})
        seen = world.observe()
        rare = seen.job.spec.model_copy(update={"checkpoint": Checkpoint(every_steps=10**12)})
        choose(replace(seen, job=seen.job.model_copy(update={"spec": rare})), spy)
        assert spy.asked[0].rollback_seconds == MOST_ROLLBACK_SECONDS


class TestReplanning:
    def test_at_an_intervals_end_a_better_layout_replaces_one_that_serves(self) -> None:
        world = World().training(1, 2, "a", "b")
        world.history = History(interval_s=60.0)
        assert world.next_plan() is None
        world.interval_ended = True
        plan = world.publish()
        assert plan.reason is PlanReason.FORECAST
        assert str(plan.layout.configuration if plan.layout else "") == "2x1"
        world.obey()
        assert world.next_plan() is None

    def test_without_a_history_there_is_no_such_moment(self) -> None:
        world = World().training(1, 2, "a", "b")
        world.interval_ended = True
        assert world.next_plan() is None
