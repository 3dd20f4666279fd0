"""The user's code fails: it is said once, with the user's traceback, and nobody hangs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from crew import Crew, MakeCrew
from proof import settle

from parcae_agent.settings import ExitCode
from parcae_api.events import Failed
from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Case:
    """What goes wrong, and what is said about it."""

    function: str
    message: str
    args: dict[str, Any] = field(default_factory=dict)
    traceback: str | None = None
    """In it, if the user's code raised."""
    step: int | None = 0
    layers: int = 5

    def __str__(self) -> str:
        return "-".join([self.function, *map(str, self.args.values())])


IN_TRAINING = [
    Case(
        "exploding",
        "layer 'fault' raised ZeroDivisionError: boom in process",
        {"at_call": 0},
        "in _explode",
    ),
    Case(
        "exploding",
        "layer 'fault' raised ZeroDivisionError: boom in process",
        {"at_call": 50 * 8},
        "in _explode",
        step=50,
    ),
    Case(
        "with_fault",
        "Training.layers: 'fault' returned tuple in step 1, but torch.float32 of shape",
        {"kind": "tuple", "at_call": 10},
        step=1,
    ),
    Case(
        "with_fault",
        "Training.layers: 'fault' returned NoneType in step 1",
        {"kind": "none", "at_call": 10},
        step=1,
    ),
    Case(
        "with_fault",
        "'fault' returned torch.float32 of shape (2, 7, 16) in step 1, but torch.float32 of shape "
        "(2, 8, 16) at first",
        {"kind": "shape", "at_call": 10},
        step=1,
    ),
    Case(
        "with_fault",
        "'fault' returned torch.float64 of shape (2, 8, 16) in step 1",
        {"kind": "dtype", "at_call": 10},
        step=1,
    ),
    Case(
        "with_fault",
        "layer 'fault' raised SystemExit: 3",
        {"kind": "exit", "at_call": 10},
        "models.py",
        step=1,
    ),
    Case(
        "with_faulty_data",
        "the data set raised LookupError: sample 50 is gone",
        {"kind": "raise"},
        "in __getitem__",
        step=None,
        layers=4,
    ),
    Case(
        "with_faulty_data",
        "Training.data: the input of step",
        {"kind": "shape"},
        step=None,
        layers=4,
    ),
    Case(
        "with_faulty_loss",
        "the loss raised ArithmeticError: no loss today",
        {"kind": "raise"},
        "in loss",
        layers=4,
    ),
    Case(
        "with_faulty_loss",
        "Training.loss: returned float; return the mean over the micro-batch's samples",
        {"kind": "float"},
        layers=4,
    ),
    Case(
        "with_faulty_loss",
        "Training.loss: returned shape (8, 32); return the mean",
        {"kind": "shape"},
        layers=4,
    ),
    Case(
        "with_faulty_optimizer",
        "the optimizer raised OverflowError: the optimizer is full",
        {"at_step": 3},
        "in update",
        step=3,
        layers=4,
    ),
    Case("turning_nan", "lower the learning rate", step=None, layers=4),
]


def failed(crew: Crew, case: Case) -> Failed:
    """What the first one said, after all who said something have ended."""
    failure = crew.wait_failed()
    assert case.message in failure.message
    if case.traceback is None:
        assert failure.traceback == ""
    else:
        assert case.traceback in failure.traceback
        assert "parcae_agent" not in failure.traceback
    if case.step is not None:
        assert failure.step == case.step
    for name, hand in crew.hands.items():
        assert len(hand.failures) <= 1
        if hand.failures:
            assert crew.gone(name) == ExitCode.USER_CODE
    return failure


@pytest.mark.parametrize("case", IN_TRAINING, ids=str)
def test_in_training(make_crew: MakeCrew, case: Case) -> None:
    """The others see their epoch break, wait for a plan, and quit when told to."""
    crew = make_crew(case.function, layers=case.layers, **case.args)
    crew.start(*"abc")
    crew.plan(1, 3, "abc")
    failed(crew, case)
    alive = [name for name, hand in crew.hands.items() if not hand.failures]
    if case.function not in ("turning_nan", "with_faulty_optimizer"):
        assert alive, "not all run the same code"
    crew.wait(
        lambda: all(crew.hands[n].failures or crew.hands[n].state.broken_revision for n in "abc"),
        "each has failed or left",
    )


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        ("no_function", {}, "'models' has no function 'no_function'; correct the name"),
        ("gpt", {"wide": 1}, "spec.entrypoint.args: gpt does not take them: got an unexpected"),
        ("Counting", {"size": 1, "vocabulary": 1, "context": 1}, "returned Counting; return a"),
        ("gpt", {"global_batch": 10, "micro_batch": 4}, "Training.global_batch: 10 is not a mult"),
        ("with_batch_norm", {}, "'norm' holds BatchNorm1d, whose running statistics depend"),
        ("FAULTS", {}, "'models' has no function 'FAULTS'"),
    ],
)
def test_bad_input_at_the_start(
    make_crew: MakeCrew, function: str, args: dict[str, Any], message: str
) -> None:
    crew = make_crew(function, **args)
    crew.launch("a")
    failure = crew.wait_failed()
    assert message in failure.message
    assert failure.step is None or failure.step == 0
    assert crew.gone("a") == ExitCode.USER_CODE
    assert len(crew.failures) == 1


def test_a_module_that_raises_at_import(make_crew: MakeCrew) -> None:
    crew = make_crew()
    (crew.folder / "broken_module.py").write_text("def helper():\n    return [][1]\n\nhelper()\n")
    crew.search_path = str(crew.folder)
    entrypoint = crew.spec.entrypoint.model_copy(update={"function": "broken_module:f"})
    crew.spec = crew.spec.model_copy(update={"entrypoint": entrypoint})
    crew.launch("a")
    failure = crew.wait_failed()
    assert failure.message == (
        "the module of the entrypoint raised IndexError: list index out of range"
    )
    assert "broken_module.py" in failure.traceback
    assert "in helper" in failure.traceback
    assert "importlib" not in failure.traceback
    assert "parcae_agent" not in failure.traceback
    assert crew.gone("a") == ExitCode.USER_CODE


def test_a_lost_peer_is_no_failure_of_the_user(make_crew: MakeCrew) -> None:
    crew = make_crew()
    crew.start(*"ab")
    crew.plan(2, 1, "ab")
    crew.wait_committed(2)
    crew.kill("b")
    crew.wait_broken(1, "a")
    crew.wait_first(crew.plan(1, 1, "a", reason=PlanReason.LOSS))
    settle(crew)
    assert not crew.failures
