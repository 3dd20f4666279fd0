"""Our element-wise optimizers against torch's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from parcae_agent import SGD, Adam, AdamW, Optimizer, warmup, warmup_cosine

PAIRS: list[tuple[Optimizer, type[torch.optim.Optimizer], dict[str, Any]]] = [
    (AdamW(lr=0.01), torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.01}),
    (
        AdamW(lr=0.1, betas=(0.8, 0.95), eps=1e-5, weight_decay=0.3),
        torch.optim.AdamW,
        {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.3},
    ),
    (Adam(lr=0.01), torch.optim.Adam, {"lr": 0.01}),
    (
        Adam(lr=0.01, weight_decay=0.1),
        torch.optim.Adam,
        {"lr": 0.01, "weight_decay": 0.1},
    ),
    (SGD(lr=0.05), torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    (SGD(lr=0.05, momentum=0.0), torch.optim.SGD, {"lr": 0.05}),
    (
        SGD(lr=0.05, weight_decay=0.01, nesterov=True),
        torch.optim.SGD,
        {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    ),
]


@pytest.mark.parametrize(("ours", "kind", "arguments"), PAIRS)
def test_fifty_steps_agree_with_torch(
    ours: Optimizer, kind: type[torch.optim.Optimizer], arguments: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    mine = torch.randn(64)
    states = tuple(torch.zeros(64) for _ in ours.states)
    theirs = nn.Parameter(mine.clone())
    optimizer = kind([theirs], **arguments)
    for step in range(50):
        grad = torch.randn(64) * 10.0 ** torch.randint(-4, 2, (64,))
        theirs.grad = grad.clone()
        optimizer.step()
        ours.update(mine, grad, states, step=step, decay=ours.weight_decay)
    torch.testing.assert_close(mine, theirs.detach(), rtol=1e-5, atol=1e-6)


def test_a_schedule_is_a_function_of_the_step() -> None:
    seen: list[int] = []

    def rate(step: int) -> float:
        seen.append(step)
        return 0.5 if step == 3 else 0.0

    optimizer = SGD(lr=rate, momentum=0.0)
    param = torch.zeros(2)
    for step in range(5):
        optimizer.update(param, torch.ones(2), (torch.zeros(2),), step=step, decay=0.0)
    assert param.tolist() == [-0.5, -0.5]
    assert seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (warmup(1.0, warmup=4), [0.25, 0.5, 0.75, 1.0, 1.0]),
        (warmup_cosine(1.0, warmup=2, total=4, floor=0.5), [0.5, 1.0, 1.0, 0.75, 0.5, 0.5]),
    ],
)
def test_schedules(schedule: Callable[[int], float], expected: list[float]) -> None:
    assert [schedule(step) for step in range(len(expected))] == pytest.approx(expected)
