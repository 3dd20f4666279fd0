"""The loop against a real etcd: plans are published once, whoever else is there or comes back."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import cast

import pytest
from control_site import FakeCluster, RunningLoop, Site, wait_until
from control_world import World, grid_of, make_job, make_profile

from parcae_api.board import JobBoard
from parcae_api.board_keys import KeyKind
from parcae_api.board_snapshot import BoardChange
from parcae_api.events import Failed, InstanceJoined, NoticeGiven, Planned
from parcae_api.history import History
from parcae_api.job_status import ConditionType
from parcae_api.membership import Holding
from parcae_api.plan import Plan, PlanReason, Rendezvous
from parcae_api.progress import Progress
from parcae_cli.etcd_server import EtcdServer
from parcae_operator.actions import Complete, Fail
from parcae_operator.loop import JobLoop
from parcae_optimizer.liveput_planner import LiveputPlanner
from parcae_optimizer.reactive import ReactivePlanner
from parcae_predictor import predictor_of

pytestmark = pytest.mark.processes


def reason(loop: JobLoop) -> str:
    condition = loop.status.condition(ConditionType.PROGRESSING)
    return condition.reason if condition else ""


def test_plans_follow_what_happens(site: Site) -> None:
    running = site.start()
    wait_until(lambda: site.cluster.asked_for == 4, "pods are asked for")
    site.ready("a", "b")
    plan = site.await_plan(1)
    assert grid_of(plan) == [["a"], ["b"]]
    site.form()
    wait_until(lambda: reason(running.loop) == "Training", "it trains")
    site.ready("c")
    assert grid_of(site.await_plan(2)) == [["a"], ["b"], ["c"]]
    site.form()
    site.cluster.notice("a")
    running.loop.wake()
    assert site.await_plan(3).reason is PlanReason.NOTICE
    site.form()
    site.lose("b")
    running.loop.wake()
    assert site.await_plan(4).reason is PlanReason.LOSS
    wait_until(lambda: sum(isinstance(e, Planned) for e in site.events) == 4, "all are reported")
    joined = [e.incarnation for e in site.events if isinstance(e, InstanceJoined)]
    assert sorted(joined) == ["a", "b", "c"]
    assert [e.incarnation for e in site.events if isinstance(e, NoticeGiven)] == ["a"]


def test_plans_by_forecast_say_what_they_expect_and_the_history_survives(site: Site) -> None:
    running = site.start(LiveputPlanner(predictor_of("hazard")), interval_s=0.2)
    wait_until(lambda: site.cluster.asked_for == 4, "pods are asked for")
    site.ready("a", "b")
    site.await_plan(1)
    site.form()
    wait_until(
        lambda: len((site.board.history() or History(interval_s=1)).intervals) > 2,
        "intervals are on the board",
    )
    running.stop()
    (event,) = (e for e in site.events if isinstance(e, Planned))
    assert event.forecast is not None
    assert event.forecast.model == "hazard"
    assert event.liveput_samples_per_second is not None
    assert event.runner_up
    before = site.board.history()
    assert before is not None
    assert before.intervals[-1].available == 2
    site.start(interval_s=0.2)
    wait_until(
        lambda: len((site.board.history() or before).intervals) > len(before.intervals) + 2,
        "another operator goes on counting",
    )
    after = site.board.history()
    assert after is not None
    assert after.intervals[: len(before.intervals)] == before.intervals
    assert sum(i.added for i in after.intervals) == 2


def test_a_loss_is_answered_in_a_moment(site: Site) -> None:
    site.start_training("a", "b")
    started = time.monotonic()
    site.lose("b")  # nobody wakes the loop: the board does
    site.await_plan(2)
    assert time.monotonic() - started < 2.0  # 0.05 s on an idle machine


def test_what_happens_at_one_moment_is_answered_by_one_plan(site: Site) -> None:
    site.start_training("a", "b", "c", "d")
    for name in ("a", "b", "c"):
        site.cluster.lose(name)
    assert grid_of(site.await_plan(2)) == [["d"]]


def test_two_loops_do_no_harm(site: Site) -> None:
    published: list[int] = []

    def note(change: BoardChange) -> None:
        if isinstance(change.model, Plan):
            published.append(change.model.revision)

    watch = site.board.watch(note, on_error=lambda error: None)
    loops = [site.start(), site.start()]
    site.ready("a", "b")
    site.await_plan(1)
    site.form()
    for revision, name in enumerate(("c", "d"), start=2):
        site.ready(name)
        site.await_plan(revision)
        site.form()
    for revision, name in enumerate(("a", "b"), start=4):
        site.lose(name)
        for running in loops:
            running.loop.wake()
        site.await_plan(revision)
        site.form()
    for loop in (running.loop for running in loops):
        wait_until(
            lambda loop=loop: reason(loop) == "Training" and loop.status.revision == 5,
            "both see it train",
        )
    assert published == [1, 2, 3, 4, 5]
    assert sum(isinstance(event, Planned) for event in site.events) == 5
    watch.close()


def test_a_plan_by_another_writer_is_adopted(site: Site) -> None:
    plan = site.start_training("a", "b")
    entry = site.board.plan()
    assert entry is not None
    other = plan.model_copy(update={"revision": 7, "grid": plan.grid[::-1]})
    site.board.publish_plan(other, entry)
    site.form()
    site.ready("c")
    plan = site.await_plan(8)
    assert grid_of(plan) == [["b"], ["a"], ["c"]]


def test_a_loop_that_returns_adopts_the_plan_and_disturbs_nobody(site: Site) -> None:
    first = site.start()
    site.ready("a", "b")
    site.await_plan(1)
    first.stop()
    # So long ago that, were it not seen to have formed, it would be replaced at once.
    entry = site.board.plan()
    assert entry is not None
    old = entry.model.model_copy(update={"revision": 2, "created_unix_s": 1.0})
    site.board.publish_plan(old, entry)
    site.form()
    for index in range(200):  # a long board: it cannot be read in a moment
        site.board.add_event(
            Planned(
                at_unix_s=float(index),
                revision=1,
                reason=PlanReason.JOIN,
                why="",
                configuration="",
                instances=1,
            )
        )
    second = site.start()
    wait_until(lambda: reason(second.loop) == "Training", "it is adopted")
    site.ready("c")
    assert grid_of(site.await_plan(3)) == [["a"], ["b"], ["c"]]


def test_half_a_board_is_no_ground_for_a_decision() -> None:
    # A watch may deliver key by key; without progress, the plan would seem to have never formed.
    world = World().training(1, 1, "a").wait(3600)
    assert world.plan is not None
    board = HalfBoard(
        BoardChange(KeyKind.AGENT, "a", world.hands["a"].membership(), 1),
        BoardChange(KeyKind.PLAN, "", world.plan, 2),
        BoardChange(KeyKind.PROFILE, "", make_profile(6), 3),
    )
    cluster = FakeCluster()
    cluster.run("a")
    loop = JobLoop(
        make_job(),
        cast(JobBoard, board),
        cluster,
        ReactivePlanner(),
        report=lambda event: None,
        clock=lambda: world.now,
    )
    running = RunningLoop(loop)
    wait_until(lambda: board.is_watched and not loop._wake.is_set(), "it has looked")
    running.stop()
    assert running.error is None
    assert not board.published


class HalfBoard:
    """Delivers some keys, and never says that this is all."""

    def __init__(self, *changes: BoardChange) -> None:
        self._changes = changes
        self.is_watched = False
        self.published: list[Plan] = []

    def watch(self, on_change: Callable[[BoardChange], None], **_: object) -> HalfBoard:
        for change in self._changes:
            on_change(change)
        self.is_watched = True
        return self

    def close(self) -> None:
        pass

    def plan(self) -> None:
        pass

    def publish_plan(self, plan: Plan, previous: object) -> None:
        self.published.append(plan)


def test_what_happened_while_no_loop_was_there_is_made_up_for(site: Site) -> None:
    site.start_training("a", "b", "c")
    site._loops[0][0].stop()
    site.lose("b")
    site.start()
    assert grid_of(site.await_plan(2)) == [["a"], ["c"]]


def test_etcd_may_go_and_come_back(own_etcd: EtcdServer) -> None:
    with Site(own_etcd.endpoint) as site:
        site.start_training("a", "b")
        own_etcd.kill()
        site.cluster.lose("b")
        site._loops[0][0].loop.wake()
        own_etcd.start()
        assert grid_of(site.await_plan(2)) == [["a"]]
        site.form()
        site.ready("c")
        site.await_plan(3)


def test_a_plan_that_cannot_be_published_is_published_later(own_etcd: EtcdServer) -> None:
    with Site(own_etcd.endpoint) as site:
        site.start_training("a", "b")
        running = site._loops[0][0]
        wait_until(lambda: reason(running.loop) == "Training", "it trains")
        own_etcd.kill()
        site.cluster.lose("b")
        running.loop.wake()
        # The client's patience ends meanwhile, and the loop lives on.
        wait_until(lambda: "not published" in running.loop._trouble, "it was tried in vain")
        own_etcd.start()
        assert grid_of(site.await_plan(2)) == [["a"]]


# What cannot be read.


@pytest.mark.parametrize("key", ["agents/x", "failures/x/0", "progress", "events/1", "history"])
def test_a_value_that_does_not_parse_does_no_harm(site: Site, key: str) -> None:
    site._client.put(site.board.prefix + key, b"{broken")
    site.start_training("a", "b")
    site._client.put(site.board.prefix + key, b'{"of": "another version"}')
    site.ready("c")
    assert grid_of(site.await_plan(2)) == [["a"], ["b"], ["c"]]


def test_a_plan_that_cannot_be_read_is_not_overwritten(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    key = site.board.prefix + "plan"
    site._client.put(key, b'{"of": "another version"}')
    site.ready("a")
    with caplog.at_level(logging.WARNING, logger="parcae_operator.loop"):
        running = site.start()
        wait_until(lambda: "cannot be read" in running.loop._trouble, "it was refused")
        for _ in range(3):
            running.loop.wake()
        wait_until(lambda: not running.loop._wake.is_set(), "it has looked again")
    item = site._client.get(key)
    assert item is not None
    assert item.value == b'{"of": "another version"}'
    assert len([r for r in caplog.records if r.name == "parcae_operator.loop"]) == 1
    site._client.delete(key)  # someone puts it right
    site.await_plan(1)


# The end.


def test_the_users_failure_ends_the_loop(site: Site) -> None:
    running = site.start()
    site.board.put_failure(
        Failed(at_unix_s=1.0, worker="a/0", step=None, message="boom", traceback="...")
    )
    running.join()
    assert running.end == Fail("boom", "...")


def test_a_crash_that_only_the_cluster_saw_outlasts_its_pod(site: Site) -> None:
    spec = site.job.spec.model_copy(update={"backoff_limit": 1})
    site.job = site.job.model_copy(update={"spec": spec})
    running = site.start()
    site.cluster.crash("a", "OOMKilled", at_unix_s=1000.0)
    running.loop.wake()
    wait_until(lambda: len(site.board.failures()) == 1, "it is written down")
    site.cluster.lose("a")
    running.stop()
    running = site.start()  # another operator
    site.cluster.crash("b", "OOMKilled again", at_unix_s=2000.0)
    running.loop.wake()
    running.join()
    message = "OOMKilled again (attempt 2, spec.backoffLimit is reached)"
    assert running.end == Fail(message, "")


def test_told_to_end_the_loop_ends_when_all_is_saved(site: Site) -> None:
    site.start_training("a")
    running = site._loops[0][0]
    site.board.put_progress(Progress(revision=1, step=12, samples=12))
    running.loop.finish("interrupted")
    assert site.await_plan(2).reason is PlanReason.FINISH
    assert not running.is_over()
    site.say("a", holding=Holding(revision=1, first=0, last=6, step=12), idle=2)
    running.join()
    assert running.end == Complete(12, "interrupted: 12 steps are committed", saved=True)


def test_a_mistake_in_a_callback_ends_the_loop_with_it(site: Site) -> None:
    running = site.start()
    running.loop._report = lambda event: 1 / 0  # type: ignore[assignment, return-value]
    site.ready("a")
    running.join()
    assert isinstance(running.error, ZeroDivisionError)


def test_a_board_that_refuses_ends_the_loop_with_its_words(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = site.start()
    running.loop._watch_failed(PermissionError("no"))
    running.join()
    assert isinstance(running.error, PermissionError)


# The board stays small.


def test_old_meeting_points_and_events_are_removed(site: Site) -> None:
    site.ready("a", "b")
    site.start()
    site.await_plan(1)
    for revision in (1, 2):
        site.board.open_epoch(Rendezvous(revision=revision, host="127.0.0.1", port=1))
    for index in range(230):
        site.board.add_event(
            Failed(at_unix_s=float(index), worker="x", step=None, message=str(index))
        )
    site.form()
    site.ready("c")
    site.await_plan(2)
    wait_until(lambda: len(site.board.events()) == 200, "the oldest events are gone")
    assert site.board.epoch(1) is None
    assert site.board.epoch(2) is not None


def test_a_board_that_was_away_is_no_loss_to_learn_from(site: Site) -> None:
    site.ready("a", "b")
    running = site.start(interval_s=0.3)
    site.await_plan(1)
    site.form()

    def intervals() -> list[tuple[int, int]]:
        history = site.board.history()
        return [(i.available, i.removed) for i in history.intervals] if history else []

    wait_until(lambda: (2, 0) in intervals(), "both are counted")
    for name in ("a", "b"):  # their pods go on
        site._leases.pop(name).revoke()
    wait_until(lambda: running.loop.status.instances == 0, "nobody is seen")
    known = len(intervals())
    site.form()
    wait_until(lambda: len(intervals()) > known + 1, "they are counted again")
    assert sum(removed for _, removed in intervals()) == 0
    assert site.plan.revision == 1
