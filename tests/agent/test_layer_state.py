"""A layer in one flat buffer: where parameters lie, and what stays zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import models
import pytest
import torch
from torch import Tensor, nn

from parcae_agent import SGD, Adam, AdamW, Layer, Optimizer, Training
from parcae_agent.layer_state import LayerState, build_layer, common_dtype
from parcae_agent.user_code import UserCodeFailed
from parcae_api.errors import InputError

CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Sign(Optimizer):
    """An optimizer as a user adds one."""

    states: ClassVar[tuple[str, ...]] = ("last",)

    def update(
        self, param: Tensor, grad: Tensor, states: tuple[Tensor, ...], *, step: int, decay: float
    ) -> None:
        param.mul_(1 - decay).sub_(grad.sign(), alpha=self.lr_at(step))
        states[0].copy_(grad)


OPTIMIZERS = [
    AdamW(lr=0.01),
    Adam(lr=0.01, weight_decay=0.1),
    SGD(lr=0.01, weight_decay=0.1),
    SGD(lr=0.01, nesterov=True),
    Sign(lr=0.01, weight_decay=0.1),
]


class Uneven(nn.Module):
    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.scalar = nn.Parameter(torch.tensor(2.0, dtype=dtype))
        self.frozen = nn.Parameter(torch.ones(3, dtype=dtype), requires_grad=False)
        self.odd = nn.Parameter(torch.randn(3, 7, dtype=dtype))
        self.bias = nn.Parameter(torch.randn(5, dtype=dtype))


def state_of(module: nn.Module, optimizer: Optimizer = OPTIMIZERS[0]) -> LayerState:
    state = LayerState(0, module, optimizer, CPU)
    state.initialize()
    return state


def training(layers: list[Layer], optimizer: Optimizer = OPTIMIZERS[0]) -> Training:
    return Training(
        layers=layers,
        loss=models.cross_entropy,
        data=models.Counting(8, 8, 4),
        optimizer=optimizer,
        global_batch=2,
        micro_batch=1,
        steps=1,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_parameter_starts_at_a_cache_line(dtype: torch.dtype) -> None:
    state = state_of(Uneven(dtype))
    assert state.flat.dtype == dtype
    for span in state.spans:
        assert span.start * dtype.itemsize % 64 == 0
        assert state.parameter_view(span.name).data_ptr() % 64 == state.flat.data_ptr() % 64
    assert state.numel * dtype.itemsize % 64 == 0
    assert [s.name for s in state.spans] == ["scalar", "odd", "bias"]


def test_parameters_are_views_of_the_buffer_with_their_initial_values() -> None:
    module = Uneven()
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    state = state_of(module)
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter, before[name])
    state.flat[0].fill_(3.0)
    assert module.odd.eq(3).all()
    assert module.frozen.eq(1).all()
    assert {k: v.shape for k, v in state.named_parameters().items()} == {
        "scalar": (),
        "odd": (3, 7),
        "bias": (5,),
    }


def _gaps(state: LayerState) -> Tensor:
    rows = state.flat.clone()
    for span in state.spans:
        rows[:, span.start : span.stop] = 0
    return rows


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda o: type(o).__name__)
def test_gaps_stay_zero_through_updates(optimizer: Optimizer) -> None:
    state = state_of(Uneven(), optimizer)
    for step in range(20):
        grad = torch.zeros(state.numel)
        for span in state.spans:
            grad[span.start : span.stop] = torch.randn(span.numel)
        state.apply(optimizer, grad, step)
    assert state.flat.abs().sum() > 0
    assert not _gaps(state).any()


def test_decay_reaches_matrices_only_or_what_the_user_says() -> None:
    def decayed(optimizer: Optimizer) -> set[str]:
        module = Uneven()
        state = state_of(module, optimizer)
        before = {s.name: state.parameter_view(s.name).clone() for s in state.spans}
        state.apply(optimizer, torch.zeros(state.numel), 0)
        return {n for n, v in before.items() if not torch.equal(v, state.parameter_view(n))}

    assert decayed(AdamW(lr=0.1, weight_decay=0.1)) == {"odd"}
    by_name: Callable[[str, Tensor], bool] = lambda name, _: name != "odd"  # noqa: E731
    assert decayed(AdamW(lr=0.1, weight_decay=0.1, decays=by_name)) == {"scalar", "bias"}


def test_applying_in_segments_is_applying_each_parameter_alone() -> None:
    optimizer = AdamW(lr=0.01, weight_decay=0.1)
    whole = state_of(Uneven(), optimizer)
    apart = {s.name: whole.flat[:, s.start : s.stop].clone() for s in whole.spans}
    for step in range(5):
        grad = torch.randn(whole.numel)
        for span in whole.spans:
            rows = apart[span.name]
            optimizer.update(
                rows[0],
                grad[span.start : span.stop].clone(),
                tuple(rows[1:]),
                step=step,
                decay=0.1 if span.name == "odd" else 0.0,
            )
        whole.apply(optimizer, grad, step)
    for span in whole.spans:
        assert torch.equal(whole.flat[:, span.start : span.stop], apart[span.name])


def test_a_layer_without_parameters_has_an_empty_buffer() -> None:
    state = state_of(nn.ReLU())
    assert (state.numel, state.nbytes, state.flat.numel()) == (0, 0, 0)
    state.apply(OPTIMIZERS[0], torch.zeros(0), 0)
    assert common_dtype([state]) == torch.float32


def test_the_dtype_of_a_stage_is_that_of_its_parameters() -> None:
    assert common_dtype([state_of(nn.ReLU()), state_of(nn.Linear(2, 2).bfloat16())]) == (
        torch.bfloat16
    )


def test_mixed_dtypes_in_a_layer_are_refused() -> None:
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).bfloat16())
    with pytest.raises(InputError, match=r"mixes parameters of torch.bfloat16, torch.float32.*use"):
        LayerState(0, mixed, OPTIMIZERS[0], CPU)


def test_an_unknown_parameter_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no parameter 'w'.*it has scalar, odd, bias"):
        state_of(Uneven()).span("w")


def test_a_layer_is_built_from_its_own_seed() -> None:
    job = training([Layer("a", lambda: nn.Linear(3, 3)), Layer("b", lambda: nn.Linear(3, 3))])
    torch.manual_seed(1)
    first = build_layer(job, 0, 7, CPU).module.state_dict()["weight"]
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(drawn, torch.rand(1)), "building drew from the caller's generator"
    assert torch.equal(first, build_layer(job, 0, 7, CPU).module.state_dict()["weight"])
    assert not torch.equal(first, build_layer(job, 1, 7, CPU).module.state_dict()["weight"])
    assert not torch.equal(first, build_layer(job, 0, 8, CPU).module.state_dict()["weight"])


def test_tied_parameters_start_equal() -> None:
    job = training(
        [
            Layer("a", lambda: nn.Linear(3, 3)),
            Layer("b", lambda: nn.Linear(3, 3), ties={"weight": "a.weight"}),
            Layer("c", lambda: nn.Linear(3, 3), ties={"weight": "b.weight"}),
        ]
    )
    first, second, third = (build_layer(job, k, 7, CPU).module for k in range(3))
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.weight, third.weight)
    assert not torch.equal(first.bias, second.bias)


def test_what_build_raises_is_the_users_failure() -> None:
    def build() -> nn.Module:
        raise FileNotFoundError("weights.bin")

    with pytest.raises(UserCodeFailed, match="layer 'a' raised FileNotFoundError: weights"):
        build_layer(training([Layer("a", build)]), 0, 7, CPU)


def test_a_build_that_makes_no_module_is_refused() -> None:
    broken = training([Layer("a", lambda: "no module")])  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="'a' was built as str; build\\(\\) must return"):
        build_layer(broken, 0, 7, CPU)


def test_memory_is_allocated_once() -> None:
    state = state_of(Uneven())
    flat = state.flat
    state.allocate()
    state.initialize()
    assert state.flat is flat
