"""Small trainings for tests: a GPT of few layers, with dropout, ties and clipping."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from parcae_agent import SGD, AdamW, Layer, Training, warmup


class Embed(nn.Module):
    def __init__(self, vocabulary: int, width: int, context: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.token(ids) + self.position.weight[: ids.shape[1]]


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.heads, self.dropout = heads, nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        parts = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.dropout(self.out(attended.transpose(1, 2).reshape(b, t, c)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class Head(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.norm, self.read = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(self.norm(x))


class Counting:
    """Sequences that count with a stride: easy to learn, made without files."""

    def __init__(self, size: int, vocabulary: int, context: int) -> None:
        self.size, self.vocabulary, self.context = size, vocabulary, context

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = (i + (1 + i % 5) * torch.arange(self.context + 1)) % self.vocabulary
        return tokens[:-1], tokens[1:]


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


def gpt(
    *,
    blocks: int = 4,
    width: int = 16,
    steps: int = 20,
    dropout: float = 0.1,
    tied: bool = True,
    clip: float | None = 0.5,
    sgd: bool = False,
    global_batch: int = 16,
    micro_batch: int = 2,
) -> Training:
    vocabulary, context = 32, 8
    ties = {"read.weight": "embed.token.weight"} if tied else {}
    return Training(
        layers=[
            Layer("embed", lambda: Embed(vocabulary, width, context)),
            *[Layer(f"block{i}", lambda: Block(width, 2, dropout)) for i in range(blocks)],
            Layer("head", lambda: Head(vocabulary, width), ties=ties),
        ],
        loss=cross_entropy,
        data=Counting(97, vocabulary, context),
        optimizer=SGD(lr=0.05) if sgd else AdamW(lr=warmup(0.01, warmup=5)),
        global_batch=global_batch,
        micro_batch=micro_batch,
        steps=steps,
        clip_norm=clip,
    )


class Fault(nn.Module):
    """Does something in forward, from its ``at_call``-th micro-batch on; not on the meta device."""

    def __init__(self, act: Callable[[torch.Tensor], object], at_call: int) -> None:
        super().__init__()
        self.inner, self.calls = nn.Linear(16, 16), 0
        self.act, self.at_call = act, at_call

    def forward(self, x: torch.Tensor) -> object:
        y = x + self.inner(x)
        if not x.is_meta:
            self.calls += 1
            if self.calls > self.at_call:
                return self.act(y)
        return y


def _explode(x: torch.Tensor) -> object:
    raise ZeroDivisionError(f"boom in process {os.getpid()}")


FAULTS: dict[str, Callable[[torch.Tensor], object]] = {
    "raise": _explode,
    "tuple": lambda x: (x, x),
    "none": lambda x: None,
    "shape": lambda x: x[:, :-1],
    "dtype": lambda x: x.double(),
    "exit": lambda x: sys.exit(3),
}


def with_fault(kind: str, *, at_call: int, steps: int = 1000) -> Training:
    """A layer in the middle goes wrong at its ``at_call``-th micro-batch."""
    base = gpt(blocks=2, steps=steps)
    layers = list(base.layers)
    layers.insert(2, Layer("fault", lambda: Fault(FAULTS[kind], at_call)))
    return replace(base, layers=layers)


def exploding(*, at_call: int, steps: int = 1000) -> Training:
    """Raises in the forward of a middle layer, at its ``at_call``-th micro-batch."""
    return with_fault("raise", at_call=at_call, steps=steps)


class FaultyData(Counting):
    """Goes wrong at one sample."""

    def __init__(self, kind: str, at: int) -> None:
        super().__init__(97, 32, 8)
        self.kind, self.at = kind, at

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        inputs, targets = super().__getitem__(i)
        if i == self.at:
            if self.kind == "raise":
                raise LookupError(f"sample {i} is gone")
            return inputs[:-1], targets[:-1]
        return inputs, targets


def with_faulty_data(kind: str, *, at: int = 50) -> Training:
    """One sample raises, or is of another size (each micro-batch is one sample)."""
    return replace(gpt(blocks=2), data=FaultyData(kind, at), global_batch=8, micro_batch=1)


def with_faulty_loss(kind: str) -> Training:
    """The loss raises, or is none."""

    def loss(output: torch.Tensor, target: torch.Tensor) -> object:
        if kind == "raise":
            raise ArithmeticError("no loss today")
        return 1.0 if kind == "float" else output.mean(0)

    return replace(gpt(blocks=2), loss=loss)


@dataclass(frozen=True, kw_only=True)
class FaultyOptimizer(SGD):
    """Raises in a step."""

    at_step: int

    def update(self, *args: Any, step: int, **more: Any) -> None:
        if step == self.at_step:
            raise OverflowError("the optimizer is full")
        super().update(*args, step=step, **more)


def with_faulty_optimizer(*, at_step: int) -> Training:
    """The user's optimizer raises in a step."""
    return replace(gpt(blocks=2), optimizer=FaultyOptimizer(lr=0.05, at_step=at_step))


def with_batch_norm() -> Training:
    """A layer whose running statistics would depend on the layout."""
    base = gpt(blocks=1)
    return replace(base, layers=[*base.layers, Layer("norm", lambda: nn.BatchNorm1d(8))])


def turning_nan(*, lr: float = 1e30, steps: int = 1000) -> Training:
    """Diverges within a few steps."""
    return replace(gpt(blocks=2, steps=steps), optimizer=SGD(lr=lr), clip_norm=None)


def on_a_small_disk(*, limit: int, steps: int = 20) -> Training:
    """No file of this process may grow beyond ``limit`` bytes: the kernel refuses to write."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return gpt(steps=steps)


class Scale(nn.Module):
    """No parameters, and no gradient reaches its input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / 8 - 1


class Frozen(nn.Module):
    """Parameters that are not trained."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.inner.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)


class InPlace(nn.Module):
    """Changes what it is given."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu_(x.add_(self.shift))


class Stop(nn.Module):
    """No gradient passes; what is before it learns nothing from here."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach()


class Pairs:
    """Vectors and their reversed cumulative sums."""

    def __len__(self) -> int:
        return 61

    def __getitem__(self, i: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.sin(torch.arange(8.0) * (i + 1))
        return x, x.cumsum(0).flip(0)


def zoo(*, steps: int = 20, dtype: str = "float32") -> Training:
    """Layers between which a cut must not show: see each one's word. One weight is tied thrice."""
    kind = {"float32": torch.float32, "float64": torch.float64}[dtype]

    class Cast(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(kind)

    def linear() -> nn.Module:
        return nn.Linear(8, 8, dtype=kind)

    layers = [
        Layer("scale", Scale),
        Layer("cast", Cast),
        Layer("frozen", lambda: Frozen(8).to(kind)),
        Layer("first", linear),
        Layer("stop", Stop),
        Layer("middle", linear, ties={"weight": "first.weight"}),
        Layer("inplace", lambda: InPlace(8).to(kind)),
        Layer("dropout", lambda: nn.Dropout(0.2)),
        Layer("last", linear, ties={"weight": "middle.weight"}),
        Layer("out", nn.Tanh),
    ]
    return Training(
        layers=layers,
        loss=lambda output, target: F.mse_loss(output, target.to(output.dtype)),
        data=Pairs(),
        optimizer=AdamW(lr=0.01),
        global_batch=12,
        micro_batch=2,
        steps=steps,
    )
