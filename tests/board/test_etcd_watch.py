"""Watches on a healthy server, and how callbacks end them."""

from __future__ import annotations

import threading

from board_helpers import Recorder, wait_until

from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Change
from parcae_api.etcd_watch import Watch


def _values(client: EtcdClient, prefix: str) -> dict[str, bytes]:
    return {key: item.value for key, item in client.list(prefix).items.items()}


def test_it_begins_with_what_is_there_and_goes_on(client: EtcdClient) -> None:
    client.put("/w/a", b"1")
    client.put("/x/a", b"not ours")
    recorder = Recorder()
    recorder.watch(client, "/w/")
    client.put("/w/b", b"2")
    client.put("/x/b", b"not ours")
    client.put("/w/a", b"3")
    deleted = client.delete_prefix("/w/a")
    client.put("/w/end", b"end")
    recorder.wait_for(b"end")
    assert deleted == 1
    assert [(c.key, c.item and c.item.value) for c in recorder.resets[0].changes] == [
        ("/w/a", b"1")
    ]
    assert [(c.key, c.item and c.item.value) for c in recorder.changes] == [
        ("/w/b", b"2"),
        ("/w/a", b"3"),
        ("/w/a", None),
        ("/w/end", b"end"),
    ]
    revisions = [change.revision for change in recorder.changes]
    assert revisions == sorted(set(revisions))
    assert recorder.mirror == _values(client, "/w/")


def test_without_a_reset_callback_all_comes_as_changes(client: EtcdClient) -> None:
    client.put("/w/b", b"1")
    client.put("/w/a", b"2")
    seen: list[Change] = []
    client.watch("/w/", seen.append, on_error=lambda _: None)
    wait_until(lambda: len(seen) == 2)
    client.put("/w/c", b"3")
    wait_until(lambda: len(seen) == 3)
    assert [change.key for change in seen] == ["/w/b", "/w/a", "/w/c"]


def test_a_burst_arrives_whole_and_in_order(client: EtcdClient) -> None:
    recorder = Recorder()
    recorder.watch(client, "/w/")
    expected = [b"%d" % i for i in range(500)]
    for value in expected:
        client.put("/w/a", value)
    recorder.wait_for(expected[-1])
    assert recorder.values == expected


def test_a_callback_that_raises_ends_it_with_a_word(client: EtcdClient) -> None:
    problem = ValueError("no such plan")
    errors: list[Exception] = []

    def fail(change: Change) -> None:
        raise problem

    watch = client.watch("/w/", fail, on_error=errors.append)
    client.put("/w/a", b"1")
    wait_until(lambda: not watch.is_running)
    assert errors == [problem]


def test_it_can_be_closed_by_its_own_callback(client: EtcdClient) -> None:
    started: list[Watch] = []
    seen: list[Change] = []
    ready = threading.Event()

    def close(change: Change) -> None:
        ready.wait()
        seen.append(change)
        started[0].close()

    started.append(client.watch("/w/", close, on_error=lambda _: None))
    ready.set()
    client.put("/w/a", b"1")
    client.put("/w/a", b"2")
    wait_until(lambda: not started[0].is_running)
    assert len(seen) == 1
