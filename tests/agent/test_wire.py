"""Operations that gloo forgets when their connection breaks must end all the same."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from crew import await_true
from torch import Tensor

from parcae_agent.breaker import EpochGuard, make_breaker
from parcae_agent.groups import destroy_groups
from parcae_agent.wire import Wire

pytestmark = pytest.mark.processes
MUCH = 16_000_000
"""Elements: more than any socket buffer takes."""


def _start(kind: str, tensor: Tensor, peer: int) -> dist.Work:
    if kind == "send":
        return dist.isend(tensor, peer)
    if kind == "receive":
        return dist.irecv(tensor, peer)
    if kind == "all_to_all":
        return dist.all_to_all_single(torch.empty_like(tensor), tensor, async_op=True)
    return dist.all_reduce(tensor, async_op=True)


def _peer(port: int, kind: str) -> None:
    """Start the other side of an operation, and stop in the middle of it."""
    store = dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=1, world_size=2)
    other = {"send": "receive", "receive": "send"}.get(kind, kind)
    work = _start(other, torch.ones(MUCH), 0)
    os.kill(os.getpid(), signal.SIGSTOP)
    work.wait()


@pytest.fixture(autouse=True)
def _same_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every init of torch's wraps it once more."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture
def peer_of() -> Iterator[Callable[[str], BaseProcess]]:
    """Meets a peer that will stop; it is killed at the end."""
    processes: list[BaseProcess] = []

    def start(kind: str) -> BaseProcess:
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["parcae_agent.preload"])
        process = context.Process(target=_peer, args=(store.port, kind))
        process.start()
        processes.append(process)
        dist.init_process_group(
            "gloo", store=store, rank=0, world_size=2, timeout=timedelta(seconds=60)
        )
        return process

    yield start
    destroy_groups()
    for process in processes:
        process.kill()
        process.join()


@pytest.mark.parametrize("kind", ["send", "receive", "all_reduce", "all_to_all"])
def test_an_operation_in_hand_ends_when_the_epoch_breaks(
    kind: str, peer_of: Callable[[str], BaseProcess]
) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    wire = Wire(direct=False)
    guard = EpochGuard(make_breaker("gloo"), wire)
    guard.enter(1)
    process = peer_of(kind)
    guard.seal()
    work = _start(kind, torch.ones(MUCH), 1)
    stat = Path(f"/proc/{process.pid}/stat")
    await_true(lambda: " T " in stat.read_text(), "the peer stops")
    tripped = []

    def trip() -> None:
        time.sleep(0.1)  # let what fits go through the connection
        tripped.append(time.monotonic())
        guard.trip(older_than=2)

    threading.Thread(target=trip).start()
    with pytest.raises((RuntimeError, OSError)):
        wire.call(lambda: work.wait(timedelta(seconds=60)))
    assert time.monotonic() - tripped[0] < 0.5
    guard.leave()
    destroy_groups()
    assert time.monotonic() - tripped[0] < 1
    _a_new_epoch_works(guard, wire)
    guard.close()


def _a_new_epoch_works(guard: EpochGuard, wire: Wire) -> None:
    guard.enter(2)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    value = torch.ones(3)
    wire.all_reduce(value)
    assert wire.gather_objects("mine", 1) == ["mine"]
    guard.leave()
    destroy_groups()


def test_what_an_operation_raises_is_raised() -> None:
    wire = Wire(direct=False)

    def fail() -> None:
        raise RuntimeError("Connection closed by peer")

    with pytest.raises(RuntimeError, match="closed by peer"):
        wire.call(fail)
    wire.call(lambda: None)


def test_a_cut_wire_refuses_until_the_next_epoch() -> None:
    wire = Wire(direct=False)
    wire.cut()
    with pytest.raises(ConnectionError, match="was broken"):
        wire.call(lambda: None)
    wire.open()
    wire.call(lambda: None)


def test_helpers_that_were_left_behind_end() -> None:
    wire = Wire(direct=False)
    before = set(threading.enumerate())
    blocked = [threading.Event() for _ in range(3)]
    for event in blocked:
        wire.open()
        threading.Timer(0.02, wire.cut).start()
        with pytest.raises(ConnectionError, match="never ended"):
            wire.call(event.wait)
    for event in blocked:
        event.set()
    await_true(
        lambda: not [t for t in threading.enumerate() if "wire" in t.name and t not in before],
        "the helpers end",
    )


def test_a_direct_wire_calls_in_place() -> None:
    wire = Wire(direct=True)
    wire.cut()
    threads: list[int] = []
    wire.call(lambda: threads.append(threading.get_ident()))
    assert threads == [threading.get_ident()]
    assert wire.watched([]) == []
