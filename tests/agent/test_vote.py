"""The vote's numbers: each put in by one worker, the same for all that come out."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from parcae_agent.vote import Ballot, Outcome

CPU = torch.device("cpu")
GROUP: Any = object()


class Sum:
    """A wire on which others have already put in their parts."""

    def __init__(self, *others: Ballot) -> None:
        self.others = others

    def all_reduce(self, tensor: Tensor, group: object) -> None:
        for other in self.others:
            tensor += other._local


def test_what_each_worker_puts_in_comes_out_for_all() -> None:
    first, last = Ballot(4, 2, CPU), Ballot(4, 2, CPU)
    first.put_losses(0, torch.tensor([0.25, 0.5]).double())
    first.put_squared_norm(0, 9.0)
    first.put_seconds(0, 0.1)
    last.put_losses(2, torch.tensor([0.75, 1.0]).double())
    last.put_squared_norm(1, 16.0)
    last.put_seconds(0, 0.2)
    last.asks_to_leave()
    wire: Any = Sum(last)
    outcome = first.cast(GROUP, wire)
    assert outcome == Outcome(
        losses=(0.25, 0.5, 0.75, 1.0),
        squared_norms=(9.0, 16.0),
        layer_seconds=(pytest.approx(0.3), 0.0),
        leaves=True,
    )
    assert outcome.loss == 0.625
    assert outcome.gradient_norm == 5.0


def test_a_grid_of_one_needs_nobody() -> None:
    ballot = Ballot(2, 1, CPU)
    ballot.put_losses(0, torch.tensor([1.0, 3.0]).double())
    wire: Any = None
    outcome = ballot.cast(None, wire)
    assert (outcome.loss, outcome.leaves) == (2.0, False)


def test_a_cleared_ballot_has_nothing_of_the_last_step() -> None:
    ballot = Ballot(2, 1, CPU)
    ballot.put_losses(0, torch.tensor([1.0, 3.0]).double())
    ballot.asks_to_leave()
    ballot.clear()
    wire: Any = None
    outcome = ballot.cast(None, wire)
    assert (outcome.loss, outcome.leaves) == (0.0, False)


@pytest.mark.parametrize(
    ("clip_norm", "scale"), [(None, 1.0), (10.0, 1.0), (5.0, 1.0), (2.5, 0.5), (0.05, 0.01)]
)
def test_clipping_brings_the_norm_down_and_never_up(clip_norm: float | None, scale: float) -> None:
    outcome = Outcome(losses=(1.0,), squared_norms=(9.0, 16.0), layer_seconds=(), leaves=False)
    assert outcome.scale(clip_norm) == pytest.approx(scale, rel=1e-6)
    assert outcome.scale(clip_norm) <= 1.0


def test_losses_survive_as_they_are() -> None:
    """A float32 loss as float64, plus zeros of the other workers, is the same number."""
    loss = torch.tensor([1.1], dtype=torch.float32)
    first, other = Ballot(2, 1, CPU), Ballot(2, 1, CPU)
    first.put_losses(1, loss.double())
    wire: Any = Sum(other)
    assert first.cast(GROUP, wire).losses[1] == float(loss.double())
