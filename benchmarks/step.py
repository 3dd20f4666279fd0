"""One worker's step against a plain torch loop, in the same process, turn by turn."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.model import LAYERS, MICRO_BATCHES, training
from benchmarks.report import Row, median

if TYPE_CHECKING:
    from parcae_agent.step import StepRunner

ROUNDS = 12
STEPS_PER_ROUND = 4


def run() -> list[Row]:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.TemporaryDirectory(prefix="parcae-bench-") as folder:
        times = _turn_by_turn(_plain_step(), our_runner(Path(folder)).run)
    dist.destroy_process_group()
    ratio = median([o / p for o, p in zip(times["ours"], times["plain"], strict=True)])
    return [
        Row(
            "our step, 1 worker, against a plain torch loop (AdamW, clipping)",
            f"{ratio:.3f} ({median(times['ours']) * 1e3:.0f} against "
            f"{median(times['plain']) * 1e3:.0f} ms)",
            "<= 1.05",
            ratio <= 1.05,
        )
    ]


def _turn_by_turn(plain: Callable[[], None], ours: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds per step, a few steps of each in turn: a busy machine slows both."""
    times: dict[str, list[float]] = {"plain": [], "ours": []}
    for step in (plain, ours):
        step()
    for _ in range(ROUNDS):
        for name, step in (("plain", plain), ("ours", ours)):
            started = time.perf_counter()
            for _ in range(STEPS_PER_ROUND):
                step()
            times[name].append((time.perf_counter() - started) / STEPS_PER_ROUND)
    return times


def _plain_step() -> Callable[[], None]:
    """What a user would write without Parcae."""
    import torch
    from torch.utils.data import DataLoader

    job = training()
    model = torch.nn.Sequential(*[layer.build() for layer in job.layers]).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = iter(DataLoader(job.data, batch_size=job.micro_batch, shuffle=True))

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(job.num_micro_batches):
            inputs, targets = next(loader)
            (job.loss(model(inputs), targets) / job.num_micro_batches).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def our_runner(folder: Path) -> StepRunner:
    """A grid of one: everything that a worker does in a step but talking to its supervisor.

    Its journal goes into ``folder``.
    """
    import torch

    from parcae_agent.data import Batches
    from parcae_agent.forming import Former, host_store
    from parcae_agent.ledger import Journal
    from parcae_agent.memory import Memory
    from parcae_agent.probe import no_probe
    from parcae_agent.shapes import survey
    from parcae_agent.step import StepContext, StepRunner
    from parcae_agent.wire import Wire
    from parcae_api.job import Reduction
    from parcae_api.plan import Configuration, Layout, Plan, PlanReason

    job, device, memory = training(), torch.device("cpu"), Memory()
    wire = Wire(direct=False)
    batches = Batches(
        job.data, seed=0, micro_batch=job.micro_batch, num_micro_batches=job.num_micro_batches
    )
    plan = Plan(
        revision=1,
        reason=PlanReason.INITIAL,
        why="",
        created_unix_s=0.0,
        layout=Layout(
            configuration=Configuration(data=1, pipeline=1),
            boundaries=(0, LAYERS),
            micro_batches=(MICRO_BATCHES,),
        ),
        grid=(("a/0",),),
    )
    former = Former(
        "a/0",
        job,
        0,
        memory,
        device=device,
        backend="gloo",
        checkpoints=None,
        wire=wire,
        probe=no_probe,
    )
    store, _ = host_store("127.0.0.1", 1)
    formed = former.form(plan, store)
    context = StepContext(
        training=job,
        survey=survey(job, 0, batches.load(0, 0)[0]),
        batches=batches,
        memory=memory,
        journal=Journal(folder, "a/0"),
        reduction=Reduction.EXACT,
        seed=0,
        device=device,
        wire=wire,
        probe=no_probe,
        is_over=lambda revision: False,
    )
    return StepRunner(context, formed)
