"""``python -m benchmarks.board_load``: what jobs ask of etcd, against what three members give.

Asked: etcd's own counters while a real job trains, with few agents and with more; what grows with
their number is each agent's, the rest the job's. Progress is counted at the most that a worker
reports it (twice a second), which fast steps reach and slow ones do not. Given: three members
on this machine's disk, each write waiting for it, and clients beside them: less than on three.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import psutil
import yaml
from etcd3 import etcdrpc

from benchmarks.report import Row, print_table
from parcae_agent.reporter import PROGRESS_SECONDS
from parcae_api.etcd import EtcdClient
from parcae_cli.etcd_server import find_etcd

ROOT = Path(__file__).resolve().parent.parent
JOBS, AGENTS = 50, 64
FEW, MORE = 2, 6
WATCH_S, PRESS_S = 20.0, 10.0
WRITERS = 64
VALUE_BYTES = 400
"""Of a progress report or a small membership."""
HEADROOM = 5.0
CHANGE_EVERY_S = 60.0
"""Of each job: more often than any recording changes."""


@dataclass(frozen=True)
class Counters:
    """Since etcd's start."""

    at_s: float
    writes: float
    keepalives: float
    revisions: float

    @classmethod
    def read(cls, url: str) -> Counters:
        with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        return cls(
            time.monotonic(),
            _sum(text, r"etcd_server_proposals_committed_total"),
            _sum(text, r'grpc_server_msg_received_total\{grpc_method="LeaseKeepAlive"[^}]*\}'),
            _sum(text, r"etcd_debugging_mvcc_current_revision"),
        )


@dataclass(frozen=True)
class Asked:
    """In a second, by one job that trains."""

    writes: float
    keepalives: float


def main() -> None:
    few, more = (_asked(agents) for agents in (FEW, MORE))
    keepalives = (more.keepalives - few.keepalives) / (MORE - FEW)
    per_agent = max(0.0, (more.writes - few.writes) / (MORE - FEW))
    per_job = 1 / PROGRESS_SECONDS + max(0.0, few.writes - FEW * per_agent)
    change = _writes_of_a_change()
    wanted = JOBS * (per_job + AGENTS * per_agent + AGENTS * change / CHANGE_EVERY_S)
    beats = JOBS * AGENTS * keepalives
    with _three_members() as endpoints:
        written = _press_writes(endpoints)
        kept = _press_keepalives(endpoints)
    fleet = f"{JOBS} jobs of {AGENTS} agents"
    print_table(
        [
            Row(
                "writes/s of a job, and of an agent of it, while it trains",
                f"{per_job:.1f} and {per_agent:.2f}",
                "reported",
                None,
            ),
            Row("writes of a change of plan, for each agent", f"{change:.1f}", "reported", None),
            Row(
                f"{fleet}, each changing every {CHANGE_EVERY_S:.0f} s: writes/s, of what three "
                "members give",
                f"{wanted:.0f} of {written:.0f}: {written / wanted:.1f} times as many",
                f">= {HEADROOM:.0f}",
                written >= HEADROOM * wanted,
            ),
            Row(
                f"{fleet}: lease renewals/s, of what three members answer",
                f"{beats:.0f} of {kept:.0f}: {kept / beats:.1f} times as many",
                f">= {HEADROOM:.0f}",
                kept >= HEADROOM * beats,
            ),
        ]
    )


def _asked(agents: int) -> Asked:
    """Of a real job with so many agents, in steady training; its progress reports left out."""
    with _training(agents) as url:
        before = Counters.read(url)
        time.sleep(WATCH_S)  # the rate over a time is what is asked for
        after = Counters.read(url)
    seconds = after.at_s - before.at_s
    writes = (after.writes - before.writes) / seconds
    reports = min(writes, 1 / PROGRESS_SECONDS)
    return Asked(max(0.0, writes - reports), (after.keepalives - before.keepalives) / seconds)


def _writes_of_a_change() -> float:
    """From the first agent on the board until all train: the costliest change there is."""
    with _training(MORE) as url:
        return Counters.read(url).writes / MORE


@contextmanager
def _training(agents: int) -> Iterator[str]:
    """A job on this machine that has just begun to train; its etcd's address."""
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        job = yaml.safe_load((ROOT / "examples" / "gpt" / "job.yaml").read_text())
        job["spec"]["instances"] = {"min": agents, "max": agents}
        shutil.copy(ROOT / "examples" / "gpt" / "gpt.py", folder)
        file = Path(folder, "job.yaml")
        file.write_text(yaml.safe_dump(job))
        argv = [sys.executable, "-m", "parcae_cli.main", "local", str(file)]
        argv += ["--out", str(Path(folder, "out"))]
        with Path(folder, "said").open("wb") as said:
            program = subprocess.Popen(
                argv, stdout=said, stderr=said, env={**os.environ, "OMP_NUM_THREADS": "1"}
            )
        try:
            yield _await_training(program, Path(folder, "out"))
        finally:
            program.send_signal(signal.SIGINT)
            try:
                program.wait(30)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()


def _await_training(program: subprocess.Popen[bytes], out: Path) -> str:
    deadline_s = time.monotonic() + 120
    while time.monotonic() < deadline_s and program.poll() is None:
        ledgers = list(out.rglob("*.jsonl"))
        if any('"commit"' in ledger.read_text() for ledger in ledgers):
            children = psutil.Process(program.pid).children(recursive=True)
            for child in children:
                for word in child.cmdline():
                    if found := re.match(r"--listen-client-urls=(http://[^,]+)", word):
                        return found[1]
        time.sleep(0.1)
    raise SystemExit("board_load: the job did not come to train")


@contextmanager
def _three_members() -> Iterator[list[str]]:
    """A cluster on free ports, with the disk waited for."""
    ports = _free_ports(6)
    names = [f"m{n}" for n in range(3)]
    clients = [f"http://127.0.0.1:{port}" for port in ports[:3]]
    peers = [f"http://127.0.0.1:{port}" for port in ports[3:]]
    cluster = ",".join(f"{name}={peer}" for name, peer in zip(names, peers, strict=True))
    with ExitStack() as stack:
        (ROOT / "runs").mkdir(exist_ok=True)  # on a disk: a temporary folder may be in memory
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT / "runs")))
        for name, client, peer in zip(names, clients, peers, strict=True):
            argv = ["setpriv", "--pdeathsig", "KILL", str(find_etcd())]  # none outlives us
            argv += [f"--name={name}", f"--data-dir={folder / name}"]
            argv += [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
            argv += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
            argv += [f"--initial-cluster={cluster}", "--log-level=error"]
            member = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(member.wait)
            stack.callback(member.kill)
        with EtcdClient(clients, patience_s=30) as client:
            client.put("/parcae/bench/ready", b"yes")
        yield clients


def _press_writes(endpoints: list[str]) -> float:
    """Puts in a second by many writers at once, as many jobs are."""
    end_s = time.monotonic() + PRESS_S
    counts = [0] * WRITERS

    def write(number: int) -> None:
        target = endpoints[number % len(endpoints)].removeprefix("http://")
        with grpc.insecure_channel(target) as channel:
            stub = etcdrpc.KVStub(channel)
            request = etcdrpc.PutRequest(
                key=f"/parcae/bench/{number}".encode(), value=bytes(VALUE_BYTES)
            )
            while time.monotonic() < end_s:
                stub.Put(request, timeout=10)
                counts[number] += 1

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / PRESS_S


def _press_keepalives(endpoints: list[str]) -> float:
    """Renewals in a second that come back, by a stream to each member, as agents are spread."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(endpoints)) as pool:
        return sum(pool.map(_renew, endpoints)) / PRESS_S


def _renew(endpoint: str) -> int:
    with grpc.insecure_channel(endpoint.removeprefix("http://")) as channel:
        stub = etcdrpc.LeaseStub(channel)
        leases = [
            stub.LeaseGrant(etcdrpc.LeaseGrantRequest(TTL=60), timeout=10).ID for _ in range(AGENTS)
        ]
        end_s = time.monotonic() + PRESS_S

        def renewals() -> Iterator[etcdrpc.LeaseKeepAliveRequest]:
            while time.monotonic() < end_s:
                for lease in leases:
                    yield etcdrpc.LeaseKeepAliveRequest(ID=lease)

        return sum(1 for _ in stub.LeaseKeepAlive(renewals()))


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def _sum(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{name} (\S+)$", text, re.MULTILINE))


if __name__ == "__main__":
    main()
