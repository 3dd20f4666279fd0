"""Crews of real workers that leave no process behind, and the small training they run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import models
import pytest
import torch
from crew import Crew, MakeCrew

from parcae_api.job import Checkpoint, Entrypoint, Instances, JobSpec, Reduction


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def make_crew(tmp_path: Path) -> Iterator[MakeCrew]:
    """A crew for a function of ``models``; its arguments are keywords.

    Without a function it is a small GPT that trains until it is paused.
    """
    crews: list[Crew] = []

    def make(
        function: str | None = None,
        *,
        layers: int = 4,
        micro_batches: int | None = None,
        reduction: Reduction = Reduction.EXACT,
        every_steps: int = 1000,
        **args: Any,
    ) -> Crew:
        if function is None:
            sizes = {"blocks": layers - 2, "global_batch": 2 * (micro_batches or 4)}
            args = {"steps": 1_000_000, **sizes, **args}
        spec = JobSpec(
            instances=Instances(max=8),
            entrypoint=Entrypoint(function=f"models:{function or 'gpt'}", args=args),
            reduction=reduction,
            checkpoint=Checkpoint(every_steps=every_steps),
            seed=7,
        )
        folder = tmp_path / f"crew{len(crews)}"
        folder.mkdir()
        crew = Crew(
            folder,
            spec,
            str(Path(models.__file__).parent),
            layers=layers,
            micro_batches=micro_batches or (8 if function else 4),
        )
        crews.append(crew)
        return crew

    yield make
    for crew in crews:
        pids = {hand.name: hand.pid for hand in crew.hands.values()}
        state = str(crew)
        assert not crew.close(), f"had to be killed at the end; before that: {state}"
        left = {name: pid for name, pid in pids.items() if _is_alive(pid)}
        assert not left


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
