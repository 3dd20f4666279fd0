"""The story so far: counted once, and gone on with by the next operator."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from parcae_api.events import AnyEvent, InstanceLost, Migration, MigrationKind, Planned
from parcae_api.job_status import MOST_DECISIONS, JobStatus
from parcae_api.plan import Configuration, Layout, Plan, PlanReason
from parcae_api.planning import PlanAnswer
from parcae_operator import explain
from parcae_operator.actions import PublishPlan
from parcae_operator.tally import Tally, with_furthest


def planned(revision: int, *, liveput: float | None = None, why: str = "why") -> Planned:
    return Planned(
        at_unix_s=1000.0 + revision,
        revision=revision,
        reason=PlanReason.JOIN,
        why=why,
        configuration="2x2",
        instances=4,
        samples_per_second=100.0,
        liveput_samples_per_second=liveput,
    )


def migration(revision: int, replayed: int = 0) -> Migration:
    return Migration(
        at_unix_s=1000.0 + revision,
        revision=revision,
        kind=MigrationKind.INTER_STAGE,
        reason=PlanReason.LOSS,
        resumed_step=3,
        bytes_moved=42,
        pause_seconds=0.5,
        transfer_seconds=0.1,
        steps_replayed=replayed,
        sudden=True,
    )


def lost(noticed: bool) -> InstanceLost:
    return InstanceLost(at_unix_s=1.0, incarnation="a", node="n", noticed=noticed)


def told(*events: AnyEvent, tally: Tally | None = None) -> Tally:
    tally = tally or Tally()
    for event in events:
        tally = tally.saw(event)
    return tally


def test_losses_are_counted_with_and_without_notice() -> None:
    tally = told(lost(True), lost(False), lost(True))
    assert (tally.preemptions, tally.preemptions_noticed) == (3, 2)


def test_the_newest_decisions_come_first_and_are_bounded() -> None:
    tally = told(*(planned(revision) for revision in range(1, 16)))
    revisions = [decision.revision for decision in tally.decisions]
    assert revisions == list(range(15, 15 - MOST_DECISIONS, -1))
    assert tally.start_time == "1970-01-01T00:16:41Z"  # of the first, long dropped


def test_a_plan_twice_is_one_decision() -> None:
    once = told(planned(1), planned(2))
    assert told(planned(2), planned(1), tally=once) == once


def test_a_migration_twice_or_an_old_one_is_counted_once() -> None:
    once = told(migration(2), migration(3, replayed=1))
    assert once.migrations == 2
    assert once.last_migration is not None
    assert (once.last_migration.revision, once.last_migration.steps_replayed) == (3, 1)
    assert told(migration(2), migration(3), tally=once) == once


def answered(configuration: str, liveput: float | None, ideal: float | None = 120.0) -> PlanAnswer:
    data, pipeline = map(int, configuration.split("x"))
    layout = Layout(
        configuration=Configuration(data=data, pipeline=pipeline),
        boundaries=tuple(range(pipeline + 1)),
        micro_batches=(1,) * data,
    )
    return PlanAnswer(
        layout=layout,
        samples_per_second=110.0,
        liveput_samples_per_second=liveput,
        ideal_samples_per_second=ideal,
        why="why",
    )


def expected(tally: Tally, answer: PlanAnswer | None, configuration: str = "2x2") -> float:
    status = JobStatus(configuration=configuration)
    return tally.onto(status, answer).liveput_samples_per_second


def test_liveput_follows_the_newest_answer_about_the_plan() -> None:
    tally = told(planned(1, liveput=80.0))
    assert expected(tally, None) == 80.0
    assert expected(tally, answered("2x2", 70.0)) == 70.0
    assert expected(tally, answered("2x2", None)) == 110.0  # nobody forecasts
    assert expected(tally, answered("4x1", 70.0)) == 80.0  # another plan's
    assert expected(tally, answered("2x2", 70.0), configuration="") == 0.0


def test_speeds_that_only_rank_layouts_are_told_to_nobody() -> None:
    answer = answered("2x2", 20_600.0, ideal=None)
    layout = answer.layout
    plan = Plan(
        revision=1,
        reason=PlanReason.INITIAL,
        why="why",
        created_unix_s=1.0,
        layout=layout,
        grid=(("a/0", "b/0"), ("c/0", "d/0")),
    )
    event = explain.planned(PublishPlan(plan, answer), num_staying=4)
    assert (event.samples_per_second, event.liveput_samples_per_second) == (None, None)
    assert expected(told(event), answer) == 0.0
    assert expected(told(event), answered("2x2", 70.0)) == 70.0  # measured, and the plan stays


def test_what_a_plan_promises_is_liveput_else_speed() -> None:
    assert told(planned(1)).liveput_samples_per_second == 100.0
    assert told(planned(1, liveput=80.0)).liveput_samples_per_second == 80.0
    assert told(planned(1, liveput=0.0)).liveput_samples_per_second == 0.0


def test_nothing_is_promised_while_training_pauses() -> None:
    tally = told(planned(1, liveput=80.0))
    assert tally.onto(JobStatus()).liveput_samples_per_second == 0.0
    assert tally.onto(JobStatus(configuration="2x2")).liveput_samples_per_second == 80.0


def test_a_long_reason_fits() -> None:
    status = told(planned(1, why="x" * 5000)).onto(JobStatus())
    JobStatus.model_validate(status.model_dump())


@given(
    st.lists(
        st.one_of(
            st.booleans().map(lost),
            st.integers(1, 30).map(planned),
            st.integers(1, 30).map(migration),
        ),
        max_size=30,
    ),
    st.data(),
)
def test_another_operator_goes_on_from_the_status(
    events: list[AnyEvent], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    before = told(*events[:cut])
    # The status goes over the API server; while training, so that liveput is in it.
    written = before.onto(JobStatus(configuration="2x2"))
    read = JobStatus.model_validate_json(written.model_dump_json(by_alias=True))
    assert Tally.of(read) == before
    assert told(*events[cut:], tally=Tally.of(read)) == told(*events)


def test_migrations_are_added_up_by_kind() -> None:
    pipeline = migration(3, replayed=2).model_copy(update={"kind": MigrationKind.PIPELINE})
    status = told(migration(2, replayed=1), pipeline, migration(5)).onto(JobStatus())
    found = {
        t.kind: (t.migrations, t.pause_seconds, t.bytes_moved) for t in status.migration_totals
    }
    assert found == {"inter_stage": (2, 1.0, 84), "pipeline": (1, 0.5, 42)}
    assert status.migrations == 3
    assert status.steps_replayed == 3


def test_going_back_to_a_checkpoint_takes_nothing_from_what_was_committed() -> None:
    written = JobStatus()
    for step, furthest in ((10, 10), (25, 25), (20, 25), (21, 25), (26, 26)):
        written = with_furthest(JobStatus(step=step, samples=8 * step), written)
        assert (written.steps_committed, written.samples_committed) == (furthest, 8 * furthest)
    assert (written.step, written.steps_committed, written.samples_committed) == (26, 26, 208)
    back = with_furthest(JobStatus(step=20, samples=160), written)
    assert (back.step, back.steps_committed, back.samples_committed) == (20, 26, 208)


def test_a_status_of_an_earlier_version_is_gone_on_with() -> None:
    status = with_furthest(JobStatus(), JobStatus(step=7, samples=56))
    assert (status.steps_committed, status.samples_committed) == (7, 56)
