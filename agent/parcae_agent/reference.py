"""The undisturbed run: the same training in one process, as a plain loop.

It shares the definition of what is computed (layers, keys, the summation tree, the optimizer)
and none of the machinery that distributes it: no process groups, pipeline, vote or migration.
Its losses and final state are what every disturbed run in ``exact`` reduction must reproduce.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from parcae_agent.data import Batches
from parcae_agent.gradients import StageGradients
from parcae_agent.layer_state import LayerState, build_layer
from parcae_agent.randomness import key, mix, seed_generators
from parcae_agent.ties import Copy, counted_once, tie_groups
from parcae_agent.training import Training
from parcae_api.job import Reduction


@dataclass
class Reference:
    """The state of an undisturbed run."""

    training: Training
    seed: int
    layers: list[LayerState]

    @classmethod
    def start(cls, training: Training, seed: int) -> Reference:
        """Build all layers on the CPU."""
        cpu = torch.device("cpu")
        layers = [build_layer(training, k, seed, cpu) for k in range(len(training.layers))]
        for layer in layers:
            layer.initialize()
        return cls(training, seed, layers)

    def losses(self, steps: int) -> Iterator[float]:
        """Train that many steps, yielding each one's loss."""
        training = self.training
        batches = Batches(
            training.data,
            seed=self.seed,
            micro_batch=training.micro_batch,
            num_micro_batches=training.num_micro_batches,
            collate=training.collate,
        )
        gradients = StageGradients(self.layers, Reduction.EXACT)
        rows = torch.zeros(training.num_micro_batches, gradients.numel, dtype=gradients.dtype)
        ties = tie_groups(training)
        for step in range(steps):
            losses = [self._micro_batch(batches, gradients, step, m) for m in self._all]
            grads = self._mean(gradients, rows)
            self._sum_ties(ties, grads)
            self._apply(ties, grads, step)
            yield sum(losses) / len(losses)

    @property
    def _all(self) -> range:
        return range(self.training.num_micro_batches)

    def _micro_batch(
        self, batches: Batches, gradients: StageGradients, step: int, micro_batch: int
    ) -> float:
        if micro_batch == 0:
            gradients.reset()
        value, target = batches.load(step, micro_batch)
        base = key("forward", self.seed)
        for layer in self.layers:
            seed_generators(mix(base, step, micro_batch, layer.index), value.device)
            value = layer.module(value)
        loss = self.training.loss(value, target)
        loss.backward()  # type: ignore[no-untyped-call]
        gradients.take(micro_batch)
        return float(loss.detach().double())

    def _mean(self, gradients: StageGradients, rows: Tensor) -> dict[int, Tensor]:
        held = rows[: len(gradients.nodes())]
        gradients.write_rows(held)
        total = held[0]
        for row in held[1:]:
            total.add_(row)
        total.div_(self.training.num_micro_batches)
        grads, start = {}, 0
        for layer in self.layers:
            grads[layer.index] = total[start : start + layer.numel]
            start += layer.numel
        return grads

    def _sum_ties(self, ties: list[tuple[Copy, ...]], grads: dict[int, Tensor]) -> None:
        for copies in ties:
            spans = [self.layers[c.layer].span(c.name) for c in copies]
            parts = [grads[c.layer][s.start : s.stop] for c, s in zip(copies, spans, strict=True)]
            total = parts[0].clone()
            for part in parts[1:]:
                total.add_(part)
            for part in parts:
                part.copy_(total)

    def _apply(self, ties: list[tuple[Copy, ...]], grads: dict[int, Tensor], step: int) -> None:
        scale = 1.0
        if self.training.clip_norm is not None:
            squares = 0.0
            for layer in self.layers:
                parts = [grads[layer.index][a:b] for a, b in counted_once(ties, layer)]
                norms = [torch.linalg.vector_norm(part, dtype=torch.float64) for part in parts]
                squares += float(sum(n.item() ** 2 for n in norms))
            scale = min(1.0, self.training.clip_norm / (math.sqrt(squares) + 1e-6))
        with torch.no_grad():
            for layer in self.layers:
                if scale != 1.0:
                    grads[layer.index].mul_(scale)
                layer.apply(self.training.optimizer, grads[layer.index], step)
