"""What metrics cost: their share of a step, and a scrape of a job with sixteen workers."""

from __future__ import annotations

import gzip
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.model import MICRO_BATCHES
from benchmarks.report import Row, median
from benchmarks.step import our_runner
from parcae_agent.metrics.meter import Meter
from parcae_agent.metrics.page import Page
from parcae_agent.metrics.telling import Telling

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "metrics"))

from metric_facts import Source, facts, registry_of
from test_agent_answer import agent_facts, busy_page

from parcae_operator.metrics.server import MetricsServer

STEPS, WORKERS, ROUNDS = 60, 16, 20
_CLOCKS = 7
"""Times that a step looks at the clock for the metrics' sake alone."""


def run() -> list[Row]:
    return [_step(), *_scrape()]


def _step() -> Row:
    """Recording against the step that it records, in the same loop."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        runner = our_runner(Path(folder))
        meter = Meter(Page.of(None))
        steps, records = [], []
        for number in range(STEPS):
            begun_s = time.perf_counter()
            outcome = runner.run()
            ended_s = time.perf_counter()
            meter.stepped(
                number,
                seconds=ended_s - begun_s,
                parts=runner.parts,
                samples=MICRO_BATCHES,
                tokens=0,
                loss=outcome.loss,
                norm=outcome.gradient_norm,
            )
            records.append(time.perf_counter() - ended_s)
            steps.append(ended_s - begun_s)
    dist.destroy_process_group()
    cost_s = median(records) + _CLOCKS * _clock_s()
    share = cost_s / median(steps)
    return Row(
        "metrics' share of a step",
        f"{share:.4%} ({cost_s * 1e6:.0f} µs of {median(steps) * 1e3:.0f} ms)",
        "< 0.5 %",
        share < 0.005,
    )


def _clock_s() -> float:
    begun_s = time.perf_counter()
    for _ in range(10_000):
        time.perf_counter()
    return (time.perf_counter() - begun_s) / 10_000


def _scrape() -> list[Row]:
    """The operator and sixteen agents over HTTP, one after the other, as Prometheus asks."""
    with ExitStack() as stack:
        operator = MetricsServer(registry_of(Source(looks=[facts])), 0, "127.0.0.1")
        stack.callback(operator.close)
        agents = [Telling(busy_page(), agent_facts, 0, "127.0.0.1") for _ in range(WORKERS)]
        for agent in agents:
            stack.callback(agent.close)
        ports = [operator.port, *[agent.port or 0 for agent in agents]]
        ours, all_of_them, packed, plain = [], [], 0, 0
        for _ in range(ROUNDS):
            seconds, sizes = zip(*[_ask(port) for port in ports], strict=True)
            ours += seconds
            all_of_them.append(sum(seconds))
            packed = sum(size for size, _ in sizes)
            plain = max(size for _, size in sizes)
    return [
        Row(
            f"a scrape of one of them: operator, {WORKERS} agents",
            f"{median(ours) * 1e3:.1f} ms, {plain / 1e3:.1f} kB unpacked",
            "<= 50 ms, <= 100 kB",
            median(ours) <= 0.05 and plain <= 100_000,
        ),
        Row(
            "all of them, one after the other",
            f"{median(all_of_them) * 1e3:.1f} ms, {packed / 1e3:.1f} kB sent",
            "<= 50 ms, <= 100 kB",
            median(all_of_them) <= 0.05 and packed <= 100_000,
        ),
    ]


def _ask(port: int) -> tuple[float, tuple[int, int]]:
    """(seconds, (bytes sent, bytes of text))."""
    asked = Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept-Encoding": "gzip"})
    begun_s = time.perf_counter()
    with urlopen(asked, timeout=10) as reply:
        body = reply.read()
    return time.perf_counter() - begun_s, (len(body), len(gzip.decompress(body)))
