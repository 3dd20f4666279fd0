"""Connecting an epoch's groups: what a peer that dies at the worst moment can hold up."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from multiprocessing.process import BaseProcess

import pytest
import torch
import torch.distributed as dist
from crew import await_true

from parcae_agent.breaker import EpochGuard, make_breaker
from parcae_agent.groups import Connector, destroy_groups
from parcae_agent.wire import Wire

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # torch's init wraps it
    yield
    destroy_groups()


def new_store() -> dist.TCPStore:
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def connector(wire: Wire | None = None) -> Connector:
    return Connector("gloo", CPU, wire or Wire(direct=False))


class TestDestroying:
    """Whatever state an epoch's groups are in, the next one's names must match its peers'."""

    def test_a_meeting_that_failed_leaves_no_count(self) -> None:
        with pytest.raises((RuntimeError, dist.DistError)):
            dist.init_process_group(
                "gloo",
                store=new_store(),
                rank=0,
                world_size=2,
                timeout=timedelta(seconds=0.1),
            )
        destroy_groups()
        assert dist.get_pg_count() == 0

    def test_groups_that_cannot_be_destroyed_are_forgotten(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise RuntimeError("broken beyond repair")

        connector().connect(new_store(), 0, 1)
        with monkeypatch.context() as patch:
            patch.setattr(dist, "destroy_process_group", fail)
            destroy_groups()
        assert "broken beyond repair" in caplog.text
        assert not dist.is_initialized()
        connector().connect(new_store(), 0, 1)
        dist.all_reduce(torch.ones(1))


def test_torch_does_not_wrap_the_exception_hook_in_every_epoch() -> None:
    hook = sys.excepthook
    connector().connect(new_store(), 0, 1)
    assert sys.excepthook is hook


def _peer(port: int, rank: int) -> None:
    """Tell the store everything a member tells, and then never connect."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    store.set(f"here/{rank}", "")
    stopping = threading.Thread(target=_stop_when_known, args=(port, rank))
    stopping.start()
    connector().connect(store, rank, 2)


def _stop_when_known(port: int, rank: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    while store.num_keys() < 4:  # both are here, and one or both have said where they listen
        pass
    os.kill(os.getpid(), signal.SIGSTOP)


@pytest.mark.processes
@pytest.mark.parametrize("rank", [0, 1])
def test_a_peer_that_never_connects_holds_nobody_up(rank: int) -> None:
    """As server and as client: gloo lets the lower rank listen."""
    wire = Wire(direct=False)
    guard = EpochGuard(make_breaker("gloo"), wire)
    guard.enter(1)
    store = new_store()
    process = _start(store.port, 1 - rank)
    threading.Timer(1.0, lambda: guard.trip(older_than=2)).start()
    started = time.monotonic()
    try:
        with pytest.raises((RuntimeError, OSError)):
            _meet_and_use(wire, store, rank)
    finally:
        guard.leave()
        process.kill()
        process.join()
    assert time.monotonic() - started < 3
    destroy_groups()
    assert not dist.is_initialized()
    guard.enter(2)
    connector(wire).connect(new_store(), 0, 1)
    guard.close()


def _meet_and_use(wire: Wire, store: dist.Store, rank: int) -> None:
    connector(wire).connect(store, rank, 2)
    wire.all_reduce(torch.ones(1))  # it was in time after all: then this must break


def _start(port: int, rank: int) -> BaseProcess:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["parcae_agent.preload"])
    process = context.Process(target=_peer, args=(port, rank))
    process.start()
    return process


def test_what_connects_too_late_changes_nothing() -> None:
    """A helper that was left behind comes to its end in the middle of the next epoch."""
    wire = Wire(direct=False)
    store = new_store()
    threading.Timer(0.3, wire.cut).start()
    store.set("here/1", "")
    with pytest.raises(ConnectionError, match="never ended"):
        connector(wire).connect(store, 0, 2)
    destroy_groups()
    wire.open()
    connector(wire).connect(new_store(), 0, 1)
    world = dist.group.WORLD
    late = dist.TCPStore("127.0.0.1", store.port, is_master=False, wait_for_workers=False)
    made: list[object] = []

    def connect() -> None:
        prefix = dist.PrefixStore("cpu/", dist.PrefixStore("0/", late))
        try:
            made.append(dist.ProcessGroupGloo(prefix, 1, 2, timedelta(seconds=5)))
        except RuntimeError as error:
            made.append(error)

    threading.Thread(target=connect, daemon=True).start()
    await_true(lambda: made, "the late peer has connected, or failed to")
    assert dist.group.WORLD is world
    dist.all_reduce(torch.ones(1))
