"""Bad input: one sentence that names the field, the value and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import pytest
import torch
from torch import Tensor, nn

from parcae_agent import SGD, AdamW, Layer, Training
from parcae_agent.shapes import Boundary, Survey, survey
from parcae_agent.training import load_training
from parcae_agent.user_code import UserCodeFailed
from parcae_api.errors import InputError
from parcae_api.job import Entrypoint

WIDTH = 4


def linear(name: str = "a", **more: Any) -> Layer:
    return Layer(name, lambda: nn.Linear(WIDTH, WIDTH), **more)


def training(*layers: Any, **change: Any) -> Training:
    given: dict[str, Any] = {
        "layers": layers or (linear(),),
        "loss": models.cross_entropy,
        "data": models.Counting(8, 8, 4),
        "optimizer": AdamW(lr=0.1),
        "global_batch": 8,
        "micro_batch": 2,
        "steps": 3,
    }
    return Training(**{**given, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"global_batch": 0}, r"Training.global_batch: is 0; give a positive whole number"),
        ({"global_batch": 8.0}, r"Training.global_batch: is 8.0; give a positive whole number"),
        ({"micro_batch": -1}, r"Training.micro_batch: is -1; give a positive whole number"),
        ({"steps": 0}, r"Training.steps: is 0; give a positive whole number"),
        (
            {"micro_batch": 3},
            r"Training.global_batch: 8 is not a multiple of micro_batch 3; change one of them",
        ),
        ({"clip_norm": 0.0}, r"Training.clip_norm: is 0.0; give a positive number"),
        ({"clip_norm": float("nan")}, r"Training.clip_norm: is nan; give a positive number"),
        ({"layers": []}, r"Training.layers: is empty; give at least one Layer"),
        ({"layers": [nn.Linear(2, 2)]}, r"Training.layers: holds torch.nn.*Linear; wrap"),
        ({"data": []}, r"Training.data: holds no sample; give at least one"),
        ({"data": iter([1])}, r"Training.data: is builtins.list_iterator; give a data set with"),
        ({"loss": 3}, r"Training.loss: is builtins.int; give a function of \(output, target\)"),
        (
            {"optimizer": torch.optim.SGD([torch.zeros(1)], lr=0.1)},
            r"Training.optimizer: is torch.optim.sgd.SGD; give one of parcae_agent's",
        ),
        (
            {"layers": [linear("a"), linear("a")]},
            r"Training.layers: the name 'a' is used twice; rename one",
        ),
        (
            {"layers": [linear("a", ties={"weight": "b.weight"}), linear("b")]},
            r"Training.layers: a.weight is tied to 'b.weight', which names no earlier layer; write",
        ),
    ],
)
def test_a_field_of_the_training(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        training(**change)


class Returns(nn.Module):
    def __init__(self, of: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.linear, self.of = nn.Linear(WIDTH, WIDTH), of

    def forward(self, x: Tensor) -> Any:
        return self.of(self.linear(x))


class Counter(nn.Module):
    """Changes a buffer at every run: in place, or by putting another in its place."""

    def __init__(self, *, in_place: bool) -> None:
        super().__init__()
        self.linear, self.in_place = nn.Linear(WIDTH, WIDTH), in_place
        self.register_buffer("runs", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        if self.in_place:
            self.runs += 1
        else:
            self.runs = self.runs + 1
        return self.linear(x)


class Cached(nn.Module):
    """Fills a buffer at the first run and only reads it later: that is no state."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("table", None)

    def forward(self, x: Tensor) -> Tensor:
        if self.table is None:
            self.table = torch.ones(WIDTH, device=x.device)
        return self.linear(x) * self.table


class NotOnMeta(nn.Module):
    """Cannot run without data: it looks at a value."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if x.sum().item() == 0 else self.linear(-x)


def look(*layers: Layer, **change: Any) -> Any:
    return survey(training(*layers, **change), 7, torch.zeros(2, WIDTH))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [Layer("a", lambda: Returns(lambda x: (x, x)))],
            r"Training.layers: 'a' returned tuple; forward must return one floating-point tensor",
        ),
        (
            [Layer("a", lambda: Returns(lambda x: x.argmax(-1)))],
            r"Training.layers: 'a' returned torch.int64; forward must return one floating-point",
        ),
        (
            [Layer("a", lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)))],
            r"Training.layers: 'a' holds BatchNorm1d, whose running statistics.*use GroupNorm",
        ),
        (
            [Layer("a", lambda: Counter(in_place=True))],
            r"Training.layers: 'a' changes its buffer 'runs' when it runs; only parameters move",
        ),
        (
            [Layer("a", lambda: Counter(in_place=False))],
            r"Training.layers: 'a' changes its buffer 'runs' when it runs; only parameters move",
        ),
        (
            [Layer("a", nn.Identity), Layer("b", nn.ReLU)],
            r"Training.layers: no layer has a parameter to train; add one",
        ),
        (
            [linear("a"), Layer("b", lambda: nn.Linear(WIDTH, WIDTH, dtype=torch.float64))],
            r"(Training.layers: 'b' has parameters of torch.float64, 'a' of torch.float32; use"
            r"|layer 'b' raised RuntimeError)",
        ),
        (
            [linear("a"), linear("b", ties={"wait": "a.weight"})],
            r"Training.layers: b.wait cannot be tied to a.weight: both must be trained parameters",
        ),
        (
            [linear("a"), linear("b", ties={"weight": "a.bias"})],
            r"Training.layers: b.weight cannot be tied to a.bias: both must be trained parameters",
        ),
        ([Layer("a", lambda: 5)], r"Training.layers: 'a' was built as int; build\(\) must return"),
    ],
)
def test_a_layer(layers: list[Layer], message: str) -> None:
    with pytest.raises((InputError, UserCodeFailed), match=f"^{message}"):
        look(*layers)


def test_layers_of_different_dtypes() -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(WIDTH, WIDTH, dtype=torch.float64)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x.double()).float()

    message = r"'b' has parameters of torch.float64, 'a' of torch.float32; use one dtype"
    with pytest.raises(InputError, match=message):
        look(linear("a"), Layer("b", Cast))


def test_ties_that_are_decayed_differently() -> None:
    optimizer = AdamW(lr=0.1, decays=lambda name, _: name == "weight")
    named = Layer("b", lambda: Named(), ties={"other": "a.weight"})
    with pytest.raises(InputError, match=r"decays a.weight and b.other differently.*treat them"):
        look(linear("a"), named, optimizer=optimizer)


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Parameter(torch.zeros(WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.other


def test_what_cannot_run_without_data_runs_for_real() -> None:
    found = look(linear("a"), Layer("b", NotOnMeta), Layer("c", nn.Tanh))
    assert [tuple(b.shape) for b in found.boundaries] == [(2, 4), (2, 4), (2, 8), (2, 8)]
    sizes = [(layer.param_bytes, layer.activation_bytes) for layer in found.profile.layers]
    assert sizes == [(2 * 64 + 0, 32), (192, 64), (0, 64)] or sizes[2] == (0, 64)


def test_a_buffer_that_is_filled_once_is_no_state() -> None:
    assert look(Layer("a", Cached)).boundaries[1].shape == (2, WIDTH)


def test_what_a_layer_raises_in_the_survey_is_the_users() -> None:
    with pytest.raises(UserCodeFailed, match=r"layer 'b' raised RuntimeError: .*mat1"):
        look(linear("a"), Layer("b", lambda: nn.Linear(WIDTH + 1, 2)))


class TestEntrypoint:
    def load(self, tmp_path: Path, code: str | None, function: str, **args: Any) -> Training:
        if code is not None:
            (tmp_path / "users_module.py").write_text(code)
        sys.modules.pop("users_module", None)
        try:
            entrypoint = Entrypoint(function=function, args=args)
            return load_training(entrypoint, search_path=str(tmp_path))
        finally:
            sys.path.remove(str(tmp_path))

    def test_the_module_does_not_exist(self, tmp_path: Path) -> None:
        message = r"^spec.entrypoint.function: 'no_such:f': there is no module 'no_such' in .*put"
        with pytest.raises(InputError, match=message):
            self.load(tmp_path, None, "no_such:f")
        with pytest.raises(InputError, match=r"no module 'users_module\.deep'"):
            self.load(tmp_path, "", "users_module.deep:f")

    def test_an_import_inside_it_fails(self, tmp_path: Path) -> None:
        """Also where the missing module's name begins like the user's own."""
        for missing in ("no_such_package", "users"):
            with pytest.raises(ModuleNotFoundError, match=missing):
                self.load(tmp_path, f"import {missing}", "users_module:f")

    def test_the_function_does_not_exist(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"'users_module' has no function 'f'; correct"):
            self.load(tmp_path, "f = 3", "users_module:f")

    def test_arguments_do_not_fit(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"^spec.entrypoint.args: f does not take them.*'b'"):
            self.load(tmp_path, "def f(a): ...", "users_module:f", a=1, b=1)

    def test_it_returns_something_else(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"returned dict; return a parcae_agent.Training"):
            self.load(tmp_path, "def f(): return {}", "users_module:f")


def test_a_user_may_give_a_subclass_of_an_optimizer() -> None:
    class Mine(SGD):
        pass

    assert isinstance(training(optimizer=Mine(lr=0.1)).optimizer, Mine)


@pytest.mark.parametrize(
    ("sample", "tokens"),
    [
        (torch.zeros(2, 5, dtype=torch.int64), 10),
        (torch.zeros(2, 5), 0),
        (torch.zeros(2, dtype=torch.int64), 0),
        (torch.zeros(2, 5, dtype=torch.bool), 0),
    ],
)
def test_tokens_are_counted_where_the_input_is_their_ids(sample: Tensor, tokens: int) -> None:
    outline = Survey(look().profile, (Boundary.of(sample),))
    assert outline.micro_batch_tokens == tokens
