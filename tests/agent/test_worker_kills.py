"""SIGKILL of one of four workers at every point: the others go on, with the same bits."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from crew import Crew
from faults import Faults
from proof import assert_same_bits

from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

STEPS = 14
IN_A_STEP = [
    Faults().kill(at="step", step=6),
    Faults().kill(at="forward", step=6, nth=1),
    Faults().kill(at="forward", step=6, nth=3),
    Faults().kill(at="backward", step=6, nth=2),
    Faults().kill(at="reduce", step=6),
    Faults().kill(at="reduced", step=6),
    Faults().kill(at="vote", step=6),
    Faults().kill(at="voted", step=6),
    Faults().kill(at="applied", step=6),
]
IN_A_PLAN_CHANGE = [
    Faults().kill(at=point, nth=2) for point in ("form", "agreed", "transfer", "transferred", "formed")
]


def _name(faults: Faults) -> str:
    fault = faults.script[0]
    return f"{fault.at}-{fault.nth}"


@pytest.mark.parametrize("victim", ["a", "d"])
@pytest.mark.parametrize("faults", IN_A_STEP, ids=_name)
def test_one_of_four_is_killed_in_a_step(
    make_crew: Callable[..., Crew], faults: Faults, victim: str
) -> None:
    crew = make_crew(steps=STEPS)
    crew.start("a", "b", "c", "d", probes={victim: faults})
    crew.plan(2, 2, "abcd")
    crew.gone(victim)
    started = time.monotonic()
    rest = [name for name in "abcd" if name != victim]
    revision = crew.plan(1, 3, rest, reason=PlanReason.LOSS)
    crew.migration(revision)
    assert time.monotonic() - started < 2
    crew.wait_saved(STEPS)
    assert_same_bits(crew, STEPS)


@pytest.mark.parametrize("victim", ["a", "c", "d"])
@pytest.mark.parametrize("faults", IN_A_PLAN_CHANGE, ids=_name)
def test_a_member_is_killed_while_a_revision_forms(
    make_crew: Callable[..., Crew], faults: Faults, victim: str
) -> None:
    """``a`` serves the store, ``c`` is a newcomer, ``d`` a donor."""
    if victim == "c":
        faults = Faults([type(f)(f.at, f.step, 1, f.act) for f in faults.script])
    crew = make_crew(steps=STEPS)
    crew.start("a", "b", "c", "d", "e", probes={victim: faults})
    crew.plan(3, 1, "abd")
    crew.wait_committed(3)
    crew.plan(1, 3, "abc", donors="d")
    crew.gone(victim)
    started = time.monotonic()
    rest = [name for name in "abce" if name != victim]
    revision = crew.plan(1, 3, rest[:3], reason=PlanReason.LOSS)
    crew.migration(revision)
    assert time.monotonic() - started < 2
    crew.wait_saved(STEPS)
    assert_same_bits(crew, STEPS)
