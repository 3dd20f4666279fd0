"""The supervisor's side of everything, with a worker that does as the test tells it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from supervisor_desk import PROFILE, Desk, MakeDesk, is_alive, make_plan, wait_until

from parcae_agent import supervisor as supervisor_module
from parcae_agent.link import (
    Advanced,
    Happened,
    Measured,
    MeetingPlace,
    Ping,
    PlanNews,
    Pong,
    Quit,
    State,
    UserFailed,
)
from parcae_agent.settings import ExitCode
from parcae_api.board import JobBoard
from parcae_api.events import Failed, Migration, MigrationKind
from parcae_api.membership import AgentState, Holding
from parcae_api.plan import PlanReason, Rendezvous
from parcae_api.progress import Progress
from parcae_cli.etcd_server import EtcdServer


def test_states_from_start_to_training(make_desk: MakeDesk) -> None:
    desk = make_desk()
    membership = desk.await_member()
    assert membership.state is AgentState.STARTING
    assert (membership.pod, membership.node, membership.node_uid) == ("pod", "node", "uid")
    assert membership.workers[0].id == desk.id
    assert membership.workers[0].pid == desk.worker.pid
    assert membership.pid == os.getpid()
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    desk.worker.state(3, step=7)
    desk.await_info(lambda info: info.revision == 3, "it trains")
    membership = desk.await_member()
    assert membership.state is AgentState.TRAINING
    assert membership.workers[0].holding is not None
    assert membership.workers[0].holding.step == 7


def test_plans_and_meeting_places_go_down(make_desk: MakeDesk, board: JobBoard) -> None:
    board.publish_plan(make_plan(1, "x/0"), None)
    desk = make_desk()
    assert desk.worker.hears(PlanNews).plan.revision == 1  # what was there before it came
    desk.publish(make_plan(2, desk.id))
    assert desk.worker.hears(PlanNews, 2).plan.revision == 2
    board.open_epoch(Rendezvous(revision=1, host="127.0.0.1", port=1))
    board.open_epoch(Rendezvous(revision=2, host="127.0.0.1", port=2))
    assert desk.worker.hears(MeetingPlace).rendezvous.revision == 2  # not the old one


def test_what_the_worker_reports_reaches_the_board(make_desk: MakeDesk, board: JobBoard) -> None:
    desk = make_desk()
    desk.worker.ready()
    wait_until(lambda: board.profile() == PROFILE, "the outline of the model")
    desk.worker.say(MeetingPlace(rendezvous=Rendezvous(revision=4, host="127.0.0.1", port=9)))
    wait_until(lambda: board.epoch(4) is not None, "the meeting place")
    desk.worker.say(Advanced(progress=Progress(revision=4, step=5, samples=40)))
    wait_until(lambda: board.progress() is not None, "progress")
    layer = PROFILE.layers[0].model_copy(update={"seconds": 0.5})
    measured = PROFILE.model_copy(update={"layers": (layer,)})
    desk.worker.say(Measured(profile=measured))
    wait_until(lambda: board.profile() == measured, "measured times")
    event = Migration(
        at_unix_s=1.0,
        revision=4,
        kind=MigrationKind.PIPELINE,
        reason=PlanReason.JOIN,
        resumed_step=5,
        bytes_moved=1,
        pause_seconds=0.1,
        transfer_seconds=0.1,
        steps_replayed=0,
        sudden=False,
    )
    desk.worker.say(Happened(event=event))
    wait_until(lambda: list(board.events().values()) == [event], "the event")


def test_a_measured_profile_is_not_overwritten_by_an_outline(
    make_desk: MakeDesk, board: JobBoard
) -> None:
    layer = PROFILE.layers[0].model_copy(update={"seconds": 0.5})
    measured = PROFILE.model_copy(update={"layers": (layer,)})
    board.put_profile(measured)
    desk = make_desk()
    desk.worker.ready()
    desk.worker.say(Advanced(progress=Progress(revision=1, step=1, samples=1)))
    wait_until(lambda: board.progress() is not None, "what was said after it")
    assert board.profile() == measured


def test_what_was_saved_stays_known(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.worker.ready()
    saved = Holding(revision=1, first=0, last=1, step=3)
    desk.worker.say(State(revision=None, holding=saved, saved=saved))
    desk.worker.state(2, step=4)
    desk.await_info(lambda info: info.revision == 2, "it trains again")
    assert desk.info.saved == saved


# The worker's end.


def test_a_killed_worker_is_off_the_board_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk(lease_seconds=60.0)
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    desk.worker.die()
    desk.await_gone()  # long before the lease ends
    assert desk.await_end() is ExitCode.WORKER_LOST


def test_a_killed_worker_is_seen_though_its_children_hold_its_link_open(
    make_desk: MakeDesk, board: JobBoard
) -> None:
    desk = make_desk(lease_seconds=60.0)
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    desk.worker.is_held_open = True
    desk.worker.say(Advanced(progress=Progress(revision=1, step=9, samples=9)))
    desk.worker.die()
    assert desk.await_end() is ExitCode.WORKER_LOST
    desk.await_gone()


def test_a_message_cut_short_by_a_kill_is_no_hindrance(make_desk: MakeDesk) -> None:
    desk = make_desk(lease_seconds=60.0)
    desk.await_member()
    desk.worker.link._socket.sendall(b'{"type":"progress","progre')
    desk.worker.die()
    assert desk.await_end() is ExitCode.WORKER_LOST
    desk.await_gone()


def test_a_worker_that_closes_its_link_may_end_with_a_code_of_its_own(
    make_desk: MakeDesk, board: JobBoard
) -> None:
    desk = make_desk()
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    desk.error_file.write_text(json.dumps({"message": {"message": "OSError: no space left"}}))
    desk.worker.link.close()
    assert is_alive(desk.worker.pid)
    desk.worker.let_exit(1)
    assert desk.await_end() is ExitCode.USER_CODE
    failure = board.failures()[desk.id]
    assert failure.message == (
        "the worker of pod ended by itself with exit code 1: OSError: no space left"
    )


def test_a_worker_that_closes_its_link_and_stays_is_killed(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "_EXIT_SECONDS", 0.1)
    desk = make_desk()
    desk.await_member()
    desk.worker.link.close()
    assert desk.await_end() is ExitCode.WORKER_LOST
    assert not is_alive(desk.worker.pid)


def test_the_users_failure_reaches_the_board(make_desk: MakeDesk, board: JobBoard) -> None:
    desk = make_desk()
    failed = Failed(at_unix_s=1.0, worker=desk.id, step=3, message="boom", traceback="trace")
    desk.worker.ready()
    desk.worker.say(UserFailed(failure=failed))
    desk.worker.exit(42)
    assert desk.await_end() is ExitCode.USER_CODE
    assert board.failures() == {desk.id: failed}


def test_the_users_failure_reaches_a_board_that_was_away(
    own_etcd: EtcdServer, make_desk: MakeDesk, board: JobBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    failed = Failed(at_unix_s=1.0, worker=desk.id, step=3, message="boom")
    desk.worker.ready()
    wait_until(lambda: board.profile() is not None, "all that was said before is written")
    tries = []
    put = desk.supervisor._board.put_failure

    def count(failure: Failed) -> None:
        tries.append(failure)
        put(failure)

    monkeypatch.setattr(desk.supervisor._board, "put_failure", count)
    own_etcd.kill()
    desk.worker.say(UserFailed(failure=failed))
    desk.worker.exit(42)
    # The client's patience has ended once; the supervisor's has not.
    wait_until(lambda: len(tries) == 2, "it is tried again")
    own_etcd.start()
    assert desk.await_end() is ExitCode.USER_CODE
    assert board.failures() == {desk.id: failed}


# A worker that hangs.


def test_a_silent_worker_is_killed(make_desk: MakeDesk) -> None:
    desk = make_desk(worker_timeout_seconds=1.5)
    desk.worker.ready()
    desk.worker.hears(Ping)
    wait_until(lambda: not is_alive(desk.worker.pid), "it is killed")


def test_a_silent_worker_is_killed_though_the_board_never_rests(
    make_desk: MakeDesk, board: JobBoard
) -> None:
    desk = make_desk(worker_timeout_seconds=1.5)
    desk.worker.ready()
    step = 0
    deadline_s = time.monotonic() + 20
    while is_alive(desk.worker.pid):
        # Others train on: news come many times a second, and the queue is never empty for long.
        step += 1
        board.put_progress(Progress(revision=1, step=step, samples=step))
        assert time.monotonic() < deadline_s


def test_a_worker_that_answers_lives(make_desk: MakeDesk) -> None:
    desk = make_desk(worker_timeout_seconds=1.5)
    desk.worker.ready()
    for count in range(1, 4):
        desk.worker.hears(Ping, count)
        desk.worker.say(Pong())
    assert is_alive(desk.worker.pid)


def test_a_worker_that_is_still_importing_is_not_judged(make_desk: MakeDesk) -> None:
    desk = make_desk(worker_timeout_seconds=0.0)
    desk.await_member()
    desk.supervisor._tick(1.0)
    assert is_alive(desk.worker.pid)


def test_a_supervisor_that_slept_asks_before_it_judges(make_desk: MakeDesk) -> None:
    desk = make_desk(worker_timeout_seconds=60.0)
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    desk.supervisor._known.heard_monotonic_s -= 3600
    desk.supervisor._tick(3600.0)
    assert is_alive(desk.worker.pid)
    desk.worker.hears(Ping)
    desk.supervisor._known.heard_monotonic_s -= 3600
    desk.supervisor._tick(1.0)
    wait_until(lambda: not is_alive(desk.worker.pid), "it is killed")


def test_a_worker_that_takes_no_message_is_killed(
    make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    desk.await_member()
    monkeypatch.setattr(desk.worker.process.link, "send", lambda message: False)
    desk.publish(make_plan(1, "x/0"))
    wait_until(lambda: not is_alive(desk.worker.pid), "it is killed")


# Leaving.


def trained(make_desk: MakeDesk, **options: object) -> Desk:
    desk = make_desk(grace_seconds=30.0, **options)
    desk.worker.ready()
    desk.publish(make_plan(1, desk.id, "x/0"))
    desk.worker.hears(PlanNews)
    desk.worker.state(1, step=5)
    desk.await_info(lambda info: info.revision == 1, "it trains")
    return desk


def test_sigterm_is_a_notice(make_desk: MakeDesk) -> None:
    desk = trained(make_desk)
    desk.terminate()
    wait_until(lambda: desk.await_member().notice is not None, "the notice is on the board")
    membership = desk.await_member()
    assert membership.state is AgentState.LEAVING
    assert membership.notice is not None
    assert membership.notice.source == "sigterm"
    assert 0 < membership.notice.deadline_unix_s - time.time() <= 30
    first = membership.notice
    desk.terminate()
    desk.worker.state(1, step=6)
    desk.await_info(lambda info: info.holding is not None and info.holding.step == 6, "goes on")
    assert desk.await_member().notice == first


def test_it_stays_while_it_is_needed_and_then_leaves(make_desk: MakeDesk) -> None:
    desk = trained(make_desk)
    desk.terminate()
    wait_until(lambda: desk.await_member().notice is not None, "the notice is on the board")
    desk.publish(make_plan(2, "x/0"))
    desk.worker.hears(PlanNews, 2)
    desk.worker.state(None, step=6)  # it has left the grid, and still serves as a donor
    desk.await_info(lambda info: info.revision is None, "it has left the grid")
    assert not desk.worker._of(Quit)
    desk.worker.state(None, idle=2, step=6)
    desk.worker.hears(Quit)
    desk.worker.exit(0)
    assert desk.await_end() is ExitCode.DONE
    desk.await_gone()


def test_a_standby_leaves_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.worker.ready()
    desk.publish(make_plan(1, "x/0"))
    desk.worker.hears(PlanNews)
    desk.worker.state(None, idle=1)
    desk.await_info(lambda info: info.idle_revision == 1, "it is idle")
    desk.terminate()
    desk.worker.hears(Quit)


def test_with_no_plan_it_leaves_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    desk.terminate()
    desk.worker.hears(Quit)


def test_of_a_deleted_job_it_leaves_at_once_in_the_midst_of_training(
    make_desk: MakeDesk, board: JobBoard
) -> None:
    """Its pod has all of its grace left: the API server's collector gave it that."""
    desk = trained(make_desk)
    desk.terminate()
    wait_until(lambda: desk.await_member().notice is not None, "the notice is on the board")
    assert not desk.worker._of(Quit)
    board.clear()
    desk.worker.hears(Quit)


def test_a_board_that_is_cleared_alone_ends_nobody(make_desk: MakeDesk, board: JobBoard) -> None:
    """As one whose store began anew: the operator writes its plan again."""
    desk = trained(make_desk)
    board.clear()
    desk.publish(make_plan(1, desk.id))
    desk.worker.hears(PlanNews, 2)
    desk.terminate()
    desk.await_info(lambda info: info.holding is not None, "it is on the board")
    assert not desk.worker._of(Quit)


def test_one_that_still_imports_leaves_at_once(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.await_member()
    desk.terminate()
    assert desk.await_end() is ExitCode.DONE
    assert not is_alive(desk.worker.pid)


def test_at_a_pause_it_leaves_when_its_state_is_saved(make_desk: MakeDesk, tmp_path: Path) -> None:
    desk = trained(make_desk, checkpoints=tmp_path / "checkpoints")
    desk.terminate()
    desk.publish(make_plan(2, reason=PlanReason.NOTICE, trains=False))
    desk.worker.hears(PlanNews, 2)
    desk.worker.state(None, step=6)
    desk.await_info(lambda info: info.revision is None, "it has left the grid")
    assert not desk.worker._of(Quit)
    desk.worker.state(None, idle=2, step=6)
    desk.worker.hears(Quit)


def test_at_a_pause_it_stays_to_the_last_where_state_is_saved_nowhere(
    make_desk: MakeDesk,
) -> None:
    desk = trained(make_desk)
    desk.terminate()
    desk.publish(make_plan(2, reason=PlanReason.NOTICE, trains=False))
    desk.worker.hears(PlanNews, 2)
    desk.worker.state(None, idle=2, step=6)
    desk.await_info(lambda info: info.idle_revision == 2, "it has obeyed")
    assert not desk.worker._of(Quit)
    # Enough are back, and it serves as a donor; then it is free.
    desk.publish(make_plan(3, "x/0"))
    desk.worker.hears(PlanNews, 3)
    desk.worker.state(None, idle=3, step=6)
    desk.worker.hears(Quit)


def test_at_the_end_of_the_job_it_stays_to_say_what_it_saved(make_desk: MakeDesk) -> None:
    desk = trained(make_desk)
    desk.terminate()
    desk.publish(make_plan(2, reason=PlanReason.FINISH, trains=False))
    desk.worker.hears(PlanNews, 2)
    desk.worker.state(None, idle=2, step=6)
    desk.await_info(lambda info: info.idle_revision == 2, "it has obeyed")
    assert not desk.worker._of(Quit)


# The board.


def test_a_lost_lease_is_retaken_though_the_board_never_rests(
    make_desk: MakeDesk, board: JobBoard
) -> None:
    desk = make_desk()
    desk.worker.ready()
    desk.await_info(lambda info: info.ready, "it is ready")
    lease = desk.supervisor._seat._lease
    assert lease is not None
    lease.revoke()
    lease.lost.set()
    assert desk.membership is None
    deadline_s, step = time.monotonic() + 20, 0
    while desk.membership is None:
        step += 1
        board.put_progress(Progress(revision=1, step=step, samples=step))
        assert time.monotonic() < deadline_s


def test_etcd_may_go_and_come_back(
    own_etcd: EtcdServer, make_desk: MakeDesk, board: JobBoard
) -> None:
    desk = trained(make_desk)
    own_etcd.kill()
    desk.worker.state(1, step=9)
    own_etcd.start()
    desk.await_info(lambda info: info.holding is not None and info.holding.step == 9, "it goes on")
    desk.publish(make_plan(2, "x/0"))
    assert desk.worker.hears(PlanNews, 2).plan.revision == 2


def test_a_worker_that_dies_while_etcd_is_away(own_etcd: EtcdServer, make_desk: MakeDesk) -> None:
    desk = trained(make_desk)
    own_etcd.kill()
    desk.worker.die()
    assert desk.await_end() is ExitCode.WORKER_LOST  # no error for a lease that ends by itself


def test_a_board_that_refuses_to_be_watched_ends_the_agent(make_desk: MakeDesk) -> None:
    desk = make_desk()
    desk.await_member()
    desk.supervisor._watch_failed(PermissionError("no"))
    assert desk.await_end() is ExitCode.WORKER_LOST


def test_incarnations_are_never_used_twice() -> None:
    ids = {supervisor_module.new_incarnation("pod") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(i.startswith("pod-") for i in ids)
