"""A job's board: all kinds of keys, the plan's compare-and-swap, values of other versions."""

from __future__ import annotations

import json
import threading

import pytest
from board_helpers import wait_until

from parcae_api.board import Entry, JobBoard
from parcae_api.board_keys import AGENTS, PLAN, KeyKind, find_slot
from parcae_api.board_snapshot import BoardChange, BoardReset
from parcae_api.errors import BoardError, BoardRefused
from parcae_api.etcd import EtcdClient
from parcae_api.events import AnyEvent, Condition, Failed, InstanceJoined
from parcae_api.history import History, IntervalCounts
from parcae_api.job import ParcaeJob
from parcae_api.membership import AgentState, Membership
from parcae_api.plan import Configuration, Layout, Plan, PlanReason, Rendezvous
from parcae_api.profile import LayerProfile, Profile
from parcae_api.progress import Progress

JOB = ParcaeJob.model_validate(
    {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {"name": "gpt"},
        "spec": {
            "instances": {"min": 1, "max": 4},
            "entrypoint": {"function": "train:gpt", "args": {"width": 64}},
        },
    }
)
PROFILE = Profile(
    layers=(LayerProfile(name="a", param_bytes=4, state_bytes=12, activation_bytes=8),),
    num_micro_batches=4,
    micro_batch_samples=2,
    total_steps=10,
)


@pytest.fixture
def board(client: EtcdClient) -> JobBoard:
    return JobBoard(client, "default", "gpt")


def _membership(incarnation: str) -> Membership:
    return Membership(
        incarnation=incarnation,
        pod="pod",
        node="node",
        node_uid="uid",
        address="127.0.0.1",
        state=AgentState.STARTING,
        workers=(),
    )


def _plan(revision: int, why: str = "test") -> Plan:
    return Plan(
        revision=revision,
        reason=PlanReason.JOIN,
        why=why,
        created_unix_s=1.0,
        layout=Layout(
            configuration=Configuration(data=1, pipeline=1), boundaries=(0, 3), micro_batches=(4,)
        ),
        grid=(("a/0",),),
    )


def _joined(at_unix_s: float) -> InstanceJoined:
    return InstanceJoined(at_unix_s=at_unix_s, incarnation="a", node="n")


def test_every_single_value_is_read_as_written(board: JobBoard) -> None:
    assert board.job() is None
    assert board.plan() is None
    assert board.progress() is None
    assert board.profile() is None
    assert board.history() is None
    progress = Progress(revision=1, step=2, samples=16, loss=0.1)
    history = History(interval_s=60).with_interval(
        IntervalCounts(start_unix_s=1, available=3, added=1, removed=0), keep=5
    )
    board.put_job(JOB)
    board.put_progress(progress)
    board.put_profile(PROFILE)
    board.put_history(history)
    assert board.job() == JOB
    assert board.progress() == progress
    assert board.profile() == PROFILE
    assert board.history() == history


def test_history_keeps_the_newest_intervals() -> None:
    history = History(interval_s=60)
    for i in range(5):
        counts = IntervalCounts(start_unix_s=i, available=1, added=0, removed=0)
        history = history.with_interval(counts, keep=3)
    assert [counts.start_unix_s for counts in history.intervals] == [2, 3, 4]


def test_jobs_do_not_see_each_other(client: EtcdClient, board: JobBoard) -> None:
    other = JobBoard(client, "default", "gpt-2")
    other.put_job(JOB)
    assert board.job() is None
    board.clear()
    assert other.job() == JOB
    with pytest.raises(ValueError, match="no name"):
        JobBoard(client, "default", "gpt/2")


def test_an_agent_is_there_as_long_as_its_lease(client: EtcdClient, board: JobBoard) -> None:
    lease = client.lease(5)
    board.put_agent(_membership("a"), lease)
    board.put_agent(_membership("b"), client.lease(5))
    assert board.agents() == {"a": _membership("a"), "b": _membership("b")}
    assert board.agent("a") == _membership("a")
    lease.revoke()
    assert list(board.agents()) == ["b"]
    assert board.agent("a") is None
    with pytest.raises(BoardRefused, match="lease"):
        board.put_agent(_membership("a"), lease)
    with pytest.raises(ValueError, match="cannot name"):
        board.put_agent(_membership("a/b"), lease)


def test_a_plan_replaces_only_the_plan_that_was_seen(board: JobBoard) -> None:
    first = board.publish_plan(_plan(1), None)
    assert first is not None
    assert board.plan() == first == Entry(_plan(1), first.mod_revision)
    assert board.publish_plan(_plan(1, "another operator"), None) is None
    second = board.publish_plan(_plan(2), first)
    assert second is not None
    assert board.publish_plan(_plan(3, "from old knowledge"), first) is None
    assert board.plan() == second
    with pytest.raises(ValueError, match="must be above 2"):
        board.publish_plan(_plan(2, "no growth"), second)


def test_one_of_two_operators_publishes_each_revision(client: EtcdClient, board: JobBoard) -> None:
    published: list[int] = []

    def operate(name: str) -> None:
        while True:
            entry = board.plan()
            revision = entry.model.revision + 1 if entry else 1
            if revision > 20:
                return
            if board.publish_plan(_plan(revision, name), entry):
                published.append(revision)

    threads = [threading.Thread(target=operate, args=(f"operator {i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(published) == list(range(1, 21))


def test_an_epoch_is_opened_once(board: JobBoard) -> None:
    here = Rendezvous(revision=7, host="a", port=1)
    assert board.epoch(7) is None
    assert board.open_epoch(here)
    assert board.open_epoch(here)
    assert not board.open_epoch(Rendezvous(revision=7, host="b", port=2))
    assert board.epoch(7) == here


def test_old_epochs_are_pruned(board: JobBoard) -> None:
    for revision in (9, 10, 11):
        board.open_epoch(Rendezvous(revision=revision, host="a", port=1))
    assert board.prune_epochs(below_revision=11) == 2
    assert board.epoch(10) is None
    assert board.epoch(11) is not None


def test_events_sort_by_time_and_are_bounded(board: JobBoard) -> None:
    added: list[AnyEvent] = [
        _joined(1e9 + 0.5),
        Condition(at_unix_s=1e9, reason="r", message="m"),
        _joined(2e9),
        _joined(1e9 + 0.25),
    ]
    ids = [board.add_event(event) for event in added]
    assert board.add_event(added[0]) not in ids
    in_order = sorted([*added, added[0]], key=lambda event: event.at_unix_s)
    assert list(board.events().values()) == in_order
    assert board.prune_events(keep=5) == 0
    assert board.prune_events(keep=2) == 3
    assert list(board.events().values()) == in_order[-2:]
    assert board.prune_events(keep=0) == 2
    assert board.events() == {}


def test_failures_are_kept_by_worker(board: JobBoard) -> None:
    failed = Failed(at_unix_s=1.0, worker="a/0", step=3, message="ValueError: no")
    board.put_failure(failed)
    assert board.failures() == {"a/0": failed}


def test_a_value_of_another_version_is_named_or_left_out(
    client: EtcdClient, board: JobBoard, caplog: pytest.LogCaptureFixture
) -> None:
    board.put_agent(_membership("a"), client.lease(5))
    client.put(board.prefix + "agents/new", b'{"incarnation": "new", "colour": "blue"}')
    client.put(board.prefix + "progress", b"not JSON")
    client.put(board.prefix + "weather", b"sunny")
    client.put(board.prefix + "epochs/7/acknowledged", b"1")
    assert list(board.agents()) == ["a"]
    assert "/parcae/default/gpt/agents/new: cannot be read" in caplog.text
    with pytest.raises(BoardError, match="/parcae/default/gpt/progress: cannot be read"):
        board.progress()
    with pytest.raises(BoardError, match="agents/new: cannot be read: pod: is required"):
        board.agent("new")
    assert board.snapshot().models == {KeyKind.AGENT: {"a": _membership("a")}}


def test_what_a_newer_program_adds_is_left_out(client: EtcdClient, board: JobBoard) -> None:
    # In an upgrade, agents of the old version must go on hearing of plans.
    plan = {"revision": 4, "reason": "initial", "why": "w", "created_unix_s": 1.0, "mood": "good"}
    client.put(board.prefix + "plan", json.dumps(plan).encode())
    entry = board.plan()
    assert entry is not None
    assert entry.model.revision == 4


def test_a_snapshot_holds_everything(client: EtcdClient, board: JobBoard) -> None:
    board.put_agent(_membership("a"), client.lease(5))
    board.publish_plan(_plan(1), None)
    snapshot = board.snapshot()
    assert snapshot.all(AGENTS) == {"a": _membership("a")}
    assert snapshot.one(PLAN) == _plan(1)
    board.clear()
    assert board.snapshot().models == {}


@pytest.mark.parametrize("path", ["", "plans", "plan/1", "agents", "agents/", "agents/a/b"])
def test_other_keys_are_none_of_ours(path: str) -> None:
    assert find_slot(path) is None


def test_one_watch_delivers_all_kinds_of_changes_in_order(
    client: EtcdClient, board: JobBoard, caplog: pytest.LogCaptureFixture
) -> None:
    lease = client.lease(5)
    board.put_agent(_membership("a"), lease)
    client.put(board.prefix + "agents/new", b"{}")
    resets: list[BoardReset] = []
    changes: list[BoardChange] = []
    errors: list[Exception] = []
    board.watch(changes.append, on_error=errors.append, on_reset=resets.append)
    wait_until(lambda: bool(resets))
    assert resets[0].snapshot.all(AGENTS) == {"a": _membership("a")}
    assert [(c.kind, c.name) for c in resets[0].changes] == [(KeyKind.AGENT, "a")]
    assert caplog.text.count("agents/new") == 1
    board.publish_plan(_plan(1), None)
    client.put(board.prefix + "agents/new", b"{}")
    lease.revoke()
    event_id = board.add_event(_joined(1.0))
    wait_until(lambda: len(changes) == 3)
    assert [(c.kind, c.name, c.model) for c in changes] == [
        (KeyKind.PLAN, "", _plan(1)),
        (KeyKind.AGENT, "a", None),
        (KeyKind.EVENT, event_id, _joined(1.0)),
    ]
    assert not errors


def test_a_watch_without_resets_delivers_all_as_changes(board: JobBoard) -> None:
    board.publish_plan(_plan(1), None)
    changes: list[BoardChange] = []
    board.watch(changes.append, on_error=lambda _: None)
    wait_until(lambda: len(changes) == 1)
    assert changes[0].model == _plan(1)


def test_a_change_tells_since_when_its_key_is_there(client: EtcdClient, board: JobBoard) -> None:
    """An agent that the board has lost and that came back is newer than its plan."""
    changes: list[BoardChange] = []
    board.put_agent(_membership("a"), client.lease(60))
    board.publish_plan(_plan(1), None)
    board.watch(changes.append, on_error=lambda _: None)
    wait_until(lambda: len(changes) == 2)
    agent, plan = sorted(changes, key=lambda change: change.kind != KeyKind.AGENT)
    assert agent.created_revision == agent.revision < plan.created_revision == plan.revision
    lease = client.lease(60)
    board.put_agent(_membership("a"), lease)
    wait_until(lambda: len(changes) == 3)
    assert changes[2].created_revision == agent.created_revision < changes[2].revision
    lease.revoke()
    board.put_agent(_membership("a"), client.lease(60))
    wait_until(lambda: len(changes) == 5)
    assert (changes[3].model, changes[3].created_revision) == (None, 0)
    assert changes[4].created_revision == changes[4].revision > plan.revision
