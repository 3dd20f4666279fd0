"""Small trainings for tests: a GPT of few layers, with dropout, ties and clipping."""

import os

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


class Boom(nn.Module):
    def __init__(self, pid_file: str | None, at_call: int) -> None:
        super().__init__()
        self.inner, self.calls, self.at_call = nn.Linear(16, 16), 0, at_call
        self.pid_file = pid_file

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_meta:
            self.calls += 1
            if self.calls > self.at_call:
                raise ZeroDivisionError(f"boom in process {os.getpid()}")
        return x + self.inner(x)


def exploding(*, at_call: int, steps: int = 1000) -> Training:
    """Raises in the forward of a middle layer, at its ``at_call``-th micro-batch."""
    base = gpt(blocks=2, steps=steps)
    layers = list(base.layers)
    layers.insert(2, Layer("boom", lambda: Boom(None, at_call)))
    return Training(
        layers=layers,
        loss=base.loss,
        data=base.data,
        optimizer=base.optimizer,
        global_batch=base.global_batch,
        micro_batch=base.micro_batch,
        steps=steps,
    )


def turning_nan(*, lr: float = 1e30, steps: int = 1000) -> Training:
    """Diverges within a few steps."""
    base = gpt(blocks=2, steps=steps)
    return Training(
        layers=base.layers,
        loss=base.loss,
        data=base.data,
        optimizer=SGD(lr=lr),
        global_batch=base.global_batch,
        micro_batch=base.micro_batch,
        steps=steps,
    )
