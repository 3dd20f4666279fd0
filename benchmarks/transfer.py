"""State moved between workers, against plain TCP on loopback, turn by turn."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
import time
from multiprocessing.connection import Connection

from benchmarks.report import Row, median

ROUNDS = 9
LAYERS, ROW = 12, 2_000_000
"""Twelve layers of 24 MB: parameters and two states of two million elements."""


def run() -> tuple[list[Row], float]:
    """The row, and the bytes per second of plain TCP."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    peer = context.Process(target=_peer, args=(theirs,), daemon=True)
    peer.start()
    try:
        raw, moved = _measure(ours)
    finally:
        peer.join(5)
        peer.kill()
        peer.join()
    nbytes = LAYERS * ROW * 3 * 4
    ratio = median([r / m for r, m in zip(raw, moved, strict=True)])
    row = Row(
        "state moved (batched flat layers over gloo), against raw loopback TCP",
        f"{ratio:.2f} ({nbytes / median(moved) / 1e9:.2f} against "
        f"{nbytes / median(raw) / 1e9:.2f} GB/s)",
        ">= 0.8",
        ratio >= 0.8,
    )
    return [row], nbytes / median(raw)


def _measure(pipe: Connection) -> tuple[list[float], list[float]]:
    import torch
    import torch.distributed as dist

    flats = [torch.randn(3, ROW) for _ in range(LAYERS)]
    raw_port, store_port = pipe.recv()
    connection = socket.create_connection(("127.0.0.1", raw_port))
    _join(0, store_port)
    raw, moved = [], []
    for _ in range(ROUNDS):
        dist.barrier()
        started = time.perf_counter()
        for flat in flats:
            connection.sendall(memoryview(flat.numpy()).cast("B"))
        assert connection.recv(1)
        raw.append(time.perf_counter() - started)
        dist.barrier()
        started = time.perf_counter()
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, f, 1) for f in flats]):
            work.wait()
        dist.barrier()
        moved.append(time.perf_counter() - started)
    dist.destroy_process_group()
    return raw, moved


def _peer(pipe: Connection) -> None:
    import torch
    import torch.distributed as dist

    flats = [torch.zeros(3, ROW) for _ in range(LAYERS)]
    listener = socket.create_server(("127.0.0.1", 0))
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    accepted: list[socket.socket] = []
    thread = threading.Thread(target=lambda: accepted.append(listener.accept()[0]))
    thread.start()
    pipe.send((listener.getsockname()[1], store.port))
    thread.join()
    _join(1, store.port)
    for _ in range(ROUNDS):
        dist.barrier()
        for flat in flats:
            view = memoryview(flat.numpy()).cast("B")
            while view:
                view = view[accepted[0].recv_into(view) :]
        accepted[0].sendall(b"!")
        dist.barrier()
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, f, 0) for f in flats]):
            work.wait()
        dist.barrier()
    dist.destroy_process_group()


def _join(rank: int, port: int) -> None:
    import torch.distributed as dist

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
