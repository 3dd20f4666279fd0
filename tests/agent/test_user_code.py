"""The border around the user's code: what is raised inside is theirs, with their frames only."""

from __future__ import annotations

import sys

import models
import pytest
import torch
from torch import nn

from parcae_agent import SGD, Layer, Training
from parcae_agent.shapes import survey
from parcae_agent.user_code import UserCodeFailed, find_failure, user_code
from parcae_api.errors import InputError, TrainingFailed


def users_function() -> None:
    deeper()


def deeper() -> None:
    raise KeyError("lost")


def failure_of(where: str, act: object) -> UserCodeFailed:
    with pytest.raises(UserCodeFailed) as raised, user_code(where):
        act()  # type: ignore[operator]
    return raised.value


def test_the_message_says_where_and_what() -> None:
    failure = failure_of("the loss", users_function)
    assert str(failure) == "the loss raised KeyError: 'lost'"
    assert failure.where == "the loss"
    assert isinstance(failure, TrainingFailed)


def test_an_error_without_words_is_named() -> None:
    def fail() -> None:
        raise AssertionError

    assert str(failure_of("the loss", fail)) == "the loss raised AssertionError: AssertionError"


def test_the_traceback_has_the_users_frames_and_none_of_ours() -> None:
    details = failure_of("the loss", users_function).details
    assert details.startswith("Traceback (most recent call last):\n")
    assert "in users_function" in details
    assert "in deeper" in details
    assert "KeyError: 'lost'" in details
    assert "user_code.py" not in details.replace("test_user_code.py", "")


class Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ torch.zeros(3, 3)


def failure_of_layer(module: nn.Module) -> UserCodeFailed:
    """As our own code meets it, with nothing of this file in between."""
    training = Training(
        layers=[Layer("a", lambda: module)],
        loss=models.cross_entropy,
        data=models.Counting(8, 8, 4),
        optimizer=SGD(lr=0.1),
        global_batch=2,
        micro_batch=2,
        steps=1,
    )
    with pytest.raises(UserCodeFailed) as raised:
        survey(training, 7, torch.zeros(2, 2))
    return raised.value


def test_torchs_frames_before_the_users_are_left_out() -> None:
    details = failure_of_layer(Broken()).details
    assert "in forward" in details
    assert "test_user_code.py" in details
    assert "_call_impl" not in details


def test_where_nothing_is_the_users_torchs_frames_are_shown() -> None:
    details = failure_of_layer(nn.Linear(3, 3)).details
    assert "mat1 and mat2 shapes cannot be multiplied" in details
    assert "in forward" in details
    assert "shapes.py" not in details


def test_a_cause_is_shown_too() -> None:
    def fail() -> None:
        try:
            deeper()
        except KeyError as error:
            raise ValueError("worse") from error

    details = failure_of("the data set", fail).details
    assert "KeyError: 'lost'" in details
    assert "ValueError: worse" in details
    assert "direct cause" in details


def test_an_exit_is_a_failure_and_does_not_end_the_worker() -> None:
    assert "raised SystemExit: 3" in str(failure_of("the module", lambda: sys.exit(3)))


def test_our_own_messages_pass() -> None:
    for error in (InputError("x"), TrainingFailed("y")):
        with pytest.raises(type(error)) as raised, user_code("the loss"):
            raise error
        assert raised.value is error


def test_nested_borders_keep_the_innermost() -> None:
    def nested() -> None:
        with user_code("layer 'a'"):
            users_function()

    assert failure_of("the schedule", nested).where == "layer 'a'"


def test_a_failure_is_found_in_a_chain() -> None:
    """The pipeline schedule wraps what a stage raises."""
    inner, outer = InputError("field: value; remedy"), RuntimeError("failed to run forward")
    outer.__cause__ = inner
    assert find_failure(outer) is inner
    assert find_failure(RuntimeError("Connection closed by peer")) is None
    assert find_failure(None) is None
