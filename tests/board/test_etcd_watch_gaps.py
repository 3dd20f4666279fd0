"""Watches across dead, stopped, compacted and restored servers: nothing lost, nothing doubled."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from board_helpers import MakeClient, Proxy, Recorder, wait_until

from parcae_api.etcd import EtcdClient
from parcae_api.etcd_types import Change
from parcae_api.etcd_watch import Watch
from parcae_cli.etcd_server import EtcdServer


@pytest.fixture
def server(own_server: EtcdServer) -> EtcdServer:
    return own_server


def _values(client: EtcdClient, prefix: str) -> dict[str, bytes]:
    return {key: item.value for key, item in client.list(prefix).items.items()}


def _assert_complete(changes: list[Change], last_revision: int) -> None:
    """Only the watched prefix is written in these tests: every revision must show, once."""
    first = changes[0].revision
    assert [change.revision for change in changes] == list(range(first, last_revision + 1))


def test_nothing_is_lost_or_doubled_when_the_server_is_killed(
    server: EtcdServer, client: EtcdClient
) -> None:
    recorder = Recorder()
    recorder.watch(client, "/w/")
    client.put("/w/n", b"before")
    recorder.wait_for(b"before")
    last_revision: list[int] = []

    def write() -> None:
        for i in range(40):
            last_revision.append(client.put("/w/n", b"%d" % i))
            time.sleep(0.02)
        last_revision.append(client.put("/w/n", b"end"))

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(2):
        time.sleep(0.15)
        server.kill()
        time.sleep(0.05)
        server.restart()
    writer.join()
    recorder.wait_for(b"end")
    _assert_complete(recorder.changes, last_revision[-1])
    written = list(dict.fromkeys(recorder.values))  # a repeated put is a second write
    assert written == [b"before", *(b"%d" % i for i in range(40)), b"end"]
    assert len(recorder.resets) == 1
    assert not recorder.errors


def test_changes_during_a_cut_connection_arrive_afterwards(
    client: EtcdClient, make_client: MakeClient, proxy: Proxy
) -> None:
    recorder = Recorder()
    recorder.watch(make_client(proxy.endpoint), "/w/")
    client.put("/w/a", b"1")
    recorder.wait_for(b"1")
    proxy.cut()
    for i in range(2, 6):
        client.put("/w/a", b"%d" % i)
    last_revision = client.put("/w/b", b"6")
    proxy.mend()
    recorder.wait_for(b"6")
    _assert_complete(recorder.changes, last_revision)
    assert len(recorder.resets) == 1


def test_dropped_history_leads_to_a_reset_with_the_deletions(
    client: EtcdClient, make_client: MakeClient, proxy: Proxy
) -> None:
    client.put("/w/old", b"stays")
    recorder = Recorder()
    recorder.watch(make_client(proxy.endpoint), "/w/")
    client.put("/w/gone", b"1")
    client.put("/w/back", b"1")
    client.put("/w/a", b"1")
    wait_until(lambda: len(recorder.changes) == 3)
    proxy.cut()
    client.delete("/w/gone")
    client.delete("/w/back")
    client.put("/w/back", b"2")
    client.put("/w/a", b"2")
    revision = client.put("/w/new", b"1")
    client.compact(revision)
    proxy.mend()
    wait_until(lambda: len(recorder.resets) == 2)
    reset = recorder.resets[1]
    assert reset.snapshot == client.list("/w/")
    assert [(c.key, c.item and c.item.value) for c in reset.changes] == [
        ("/w/gone", None),
        ("/w/back", b"2"),
        ("/w/a", b"2"),
        ("/w/new", b"1"),
    ]
    client.put("/w/a", b"after")
    recorder.wait_for(b"after")
    assert recorder.mirror == _values(client, "/w/")
    assert len(recorder.changes) == 4
    assert not recorder.errors


def test_a_server_restored_from_a_backup_leads_to_a_reset(
    server: EtcdServer, client: EtcdClient, tmp_path: Path
) -> None:
    client.put("/w/a", b"1")
    server.stop()
    shutil.copytree(tmp_path / "etcd", tmp_path / "backup")
    server.restart()
    recorder = Recorder()
    recorder.watch(client, "/w/")
    for i in range(5):
        client.put("/w/late", b"%d" % i)
    recorder.wait_for(b"4")
    server.kill()
    shutil.rmtree(tmp_path / "etcd")
    shutil.copytree(tmp_path / "backup", tmp_path / "etcd")
    server.restart()
    wait_until(lambda: len(recorder.resets) == 2)
    assert recorder.mirror == {"/w/a": b"1"}
    client.put("/w/b", b"new")
    recorder.wait_for(b"new")
    assert recorder.mirror == _values(client, "/w/")


def test_a_stopped_server_is_noticed_and_its_changes_arrive(
    server: EtcdServer, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "parcae_api.etcd_watch")
    client = make_client(timeout_s=0.3)
    recorder = Recorder()
    recorder.watch(client, "/w/")
    client.put("/w/a", b"1")
    recorder.wait_for(b"1")
    os.kill(server.pid, signal.SIGSTOP)
    stopped_s = time.monotonic()
    try:
        wait_until(lambda: "no sign of life" in caplog.text)
        assert time.monotonic() - stopped_s < 1.2
    finally:
        os.kill(server.pid, signal.SIGCONT)
    last_revision = client.put("/w/a", b"2")
    recorder.wait_for(b"2")
    _assert_complete(recorder.changes, last_revision)


def test_a_quiet_watch_is_not_taken_for_dead(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "parcae_api")
    client = make_client(timeout_s=0.2)
    recorder = Recorder()
    recorder.watch(client, "/w/")
    time.sleep(1.0)
    assert not caplog.text
    client.put("/w/a", b"1")
    recorder.wait_for(b"1")


def test_a_slow_callback_is_not_taken_for_a_dead_server(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "parcae_api")
    client = make_client(timeout_s=0.2)
    seen: list[Change] = []

    def take(change: Change) -> None:
        time.sleep(0.5)
        seen.append(change)

    client.watch("/w/", take, on_error=lambda _: None)
    client.put("/w/a", b"1")
    client.put("/w/a", b"2")
    wait_until(lambda: len(seen) == 2)
    assert not caplog.text


def test_a_connection_that_died_silently_is_noticed(
    client: EtcdClient, make_client: MakeClient, proxy: Proxy
) -> None:
    recorder = Recorder()
    recorder.watch(make_client(proxy.endpoint, timeout_s=0.3), "/w/")
    client.put("/w/a", b"1")
    recorder.wait_for(b"1")
    proxy.freeze()
    last_revision = client.put("/w/a", b"2")
    recorder.wait_for(b"2", timeout_s=2.0)
    _assert_complete(recorder.changes, last_revision)


def test_it_moves_to_another_endpoint(
    client: EtcdClient, server: EtcdServer, make_client: MakeClient, proxy: Proxy
) -> None:
    recorder = Recorder()
    recorder.watch(make_client(proxy.endpoint, server.endpoint), "/w/")
    client.put("/w/a", b"1")
    recorder.wait_for(b"1")
    proxy.cut()
    last_revision = client.put("/w/a", b"2")
    recorder.wait_for(b"2", timeout_s=2.0)
    _assert_complete(recorder.changes, last_revision)


def test_it_waits_for_a_server_that_comes_later(server: EtcdServer, client: EtcdClient) -> None:
    client.put("/w/a", b"1")
    server.kill()
    recorder = Recorder()
    client.watch("/w/", recorder.changes.append, on_error=recorder.errors.append)
    time.sleep(0.2)
    assert not recorder.changes
    server.restart()
    recorder.wait_for(b"1")
    assert not recorder.errors


def _time_to_close_s(watch: Watch) -> float:
    started_s = time.monotonic()
    watch.close()
    assert not watch.is_running
    return time.monotonic() - started_s


def test_it_closes_promptly_whatever_the_server_does(
    server: EtcdServer, make_client: MakeClient
) -> None:
    client = make_client(timeout_s=5.0)
    recorder = Recorder()
    assert _time_to_close_s(recorder.watch(client, "/w/")) < 0.3
    watch = recorder.watch(client, "/w/")
    os.kill(server.pid, signal.SIGSTOP)
    assert _time_to_close_s(watch) < 0.3
    # It cannot even read the prefix:
    unread = client.watch("/w/", recorder.changes.append, on_error=recorder.errors.append)
    time.sleep(0.1)
    assert _time_to_close_s(unread) < 0.3
    server.kill()
    unread = client.watch("/w/", recorder.changes.append, on_error=recorder.errors.append)
    time.sleep(0.1)
    assert _time_to_close_s(unread) < 0.3
    assert not recorder.errors
