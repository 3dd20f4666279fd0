"""From the start of a supervisor to its membership on the board."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.model import ARGUMENTS, EXAMPLE
from benchmarks.report import Row, median, spread
from parcae_agent.settings import AgentConfig
from parcae_api.board import JobBoard
from parcae_api.board_keys import KeyKind
from parcae_api.etcd import EtcdClient
from parcae_api.job import Entrypoint, Instances, JobSpec
from parcae_cli.etcd_server import EtcdServer

ROUNDS = 5


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        root = Path(folder)
        with EtcdServer(root / "etcd", root / "etcd.log") as server:
            times = [_once(server.endpoint, root, k) for k in range(ROUNDS)]
    return [
        Row(
            "supervisor start (a new Python) to membership on the board",
            spread(times),
            "<= 1 s",
            median(times) <= 1.0,
        )
    ]


def _once(endpoint: str, root: Path, number: int) -> float:
    config = AgentConfig(
        endpoints=(endpoint,),
        namespace="default",
        job=f"bench-{number}",
        spec=JobSpec(
            instances=Instances(max=1),
            entrypoint=Entrypoint(function="gpt:gpt", args=dict(ARGUMENTS)),
        ),
        pod="agent",
        node="node",
        node_uid="node",
        address="127.0.0.1",
        search_path=str(EXAMPLE),
        ledger=root / "ledger",
    )
    there = threading.Event()
    with EtcdClient([endpoint]) as client:
        board = JobBoard(client, "default", f"bench-{number}")
        board.watch(
            lambda change: there.set() if change.kind is KeyKind.AGENT else None,
            on_error=lambda error: None,
        )
        started = time.perf_counter()
        environment = {**os.environ, "PARCAE_AGENT": config.to_json().decode()}
        agent = subprocess.Popen(
            [sys.executable, "-m", "parcae_agent"], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            assert there.wait(30)
            return time.perf_counter() - started
        finally:
            agent.kill()
            agent.wait()
