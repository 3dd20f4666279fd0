"""Element-wise optimizers on flat buffers.

Parcae keeps a layer as one buffer: a row of parameters and a row per optimizer state. An
optimizer therefore sees vectors, not tensors with shapes, and must treat every element alike:
that is what lets a layer move between workers as one message, and its bits stay the same.

To add one, subclass ``Optimizer``: name its states and write ``update`` with in-place
operations on the vectors it is given. It may read ``step`` (committed steps before this one)
and nothing else that changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

Schedule = Callable[[int], float]
"""Committed steps before this one → learning rate."""


def matrices_only(name: str, parameter: Tensor) -> bool:
    """Decay weights of two or more axes, not biases and norms: the usual choice."""
    return parameter.ndim >= 2


@dataclass(frozen=True, kw_only=True)
class Optimizer(ABC):
    """Base of all. ``lr`` is a number or a function of the step."""

    lr: float | Schedule
    weight_decay: float = 0.0
    decays: Callable[[str, Tensor], bool] = matrices_only
    """Which parameters are decayed: (name in its layer, parameter) → bool."""

    states: ClassVar[tuple[str, ...]] = ()
    """Names of the per-element states, each a row of zeros at first."""

    def lr_at(self, step: int) -> float:
        """Learning rate of a step."""
        return self.lr(step) if callable(self.lr) else self.lr

    @abstractmethod
    def update(
        self, param: Tensor, grad: Tensor, states: tuple[Tensor, ...], *, step: int, decay: float
    ) -> None:
        """Apply one step in place.

        Args:
            param: Parameters, a vector.
            grad: Their gradient, a vector that may be overwritten.
            states: A vector for each name in ``states``.
            step: Committed steps before this one.
            decay: Weight decay of these elements.
        """


@dataclass(frozen=True, kw_only=True)
class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019)."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.01
    states: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")

    def update(
        self, param: Tensor, grad: Tensor, states: tuple[Tensor, ...], *, step: int, decay: float
    ) -> None:
        """See ``Optimizer.update``."""
        lr = self.lr_at(step)
        if decay:
            param.mul_(1 - lr * decay)
        self._adam(param, grad, states, step=step, lr=lr)

    def _adam(
        self, param: Tensor, grad: Tensor, states: tuple[Tensor, ...], *, step: int, lr: float
    ) -> None:
        exp_avg, exp_avg_sq = states
        beta1, beta2 = self.betas
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1 = 1 - beta1 ** (step + 1)
        correction2 = 1 - beta2 ** (step + 1)
        # The gradient is spent: its memory holds the denominator, so a step allocates nothing.
        torch.sqrt(exp_avg_sq, out=grad)
        grad.mul_(correction2**-0.5).add_(self.eps)
        param.addcdiv_(exp_avg, grad, value=-lr / correction1)


@dataclass(frozen=True, kw_only=True)
class Adam(AdamW):
    """Adam (Kingma & Ba, 2015); weight decay, if any, is added to the gradient."""

    weight_decay: float = 0.0

    def update(
        self, param: Tensor, grad: Tensor, states: tuple[Tensor, ...], *, step: int, decay: float
    ) -> None:
        """See ``Optimizer.update``."""
        if decay:
            grad.add_(param, alpha=decay)
        self._adam(param, grad, states, step=step, lr=self.lr_at(step))


@dataclass(frozen=True, kw_only=True)
class SGD(Optimizer):
    """Stochastic gradient descent with momentum."""

    momentum: float = 0.9
    nesterov: bool = False
    states: ClassVar[tuple[str, ...]] = ("momentum",)

    def update(
        self, param: Tensor, grad: Tensor, states: tuple[Tensor, ...], *, step: int, decay: float
    ) -> None:
        """See ``Optimizer.update``."""
        if decay:
            grad.add_(param, alpha=decay)
        (momentum,) = states
        momentum.mul_(self.momentum).add_(grad)
        direction = grad.add_(momentum, alpha=self.momentum) if self.nesterov else momentum
        param.add_(direction, alpha=-self.lr_at(step))
