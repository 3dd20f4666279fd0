"""Learning rates as functions of the step alone: the layout never enters."""

from __future__ import annotations

import math

from parcae_agent.optimizers import Schedule


def warmup_cosine(peak: float, *, warmup: int, total: int, floor: float = 0.1) -> Schedule:
    """Rise linearly to ``peak`` over ``warmup`` steps, fall as a cosine to ``floor·peak``."""

    def rate(step: int) -> float:
        if step < warmup:
            return peak * (step + 1) / warmup
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return peak * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress)))

    return rate


def warmup(peak: float, *, warmup: int) -> Schedule:
    """Rise linearly to ``peak`` over ``warmup`` steps and stay there."""

    def rate(step: int) -> float:
        return peak * min(1.0, (step + 1) / warmup)

    return rate
