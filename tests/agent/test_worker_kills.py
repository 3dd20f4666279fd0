"""SIGKILL of workers at every point: the others go on, with the same bits."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from crew import Crew, MakeCrew, await_true
from faults import Faults
from proof import settle

from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

AT = 4
RECOVERY_SECONDS = 3.0
"""From the plan without the dead to the epoch's first step; 0.1-0.5 s on an idle machine."""
IN_A_STEP = [
    Faults().kill(at="step", step=AT),
    Faults().kill(at="forward", step=AT, nth=1),
    Faults().kill(at="forward", step=AT, nth=2),
    Faults().kill(at="backward", step=AT, nth=1),
    Faults().kill(at="reduce", step=AT),
    Faults().kill(at="reduced", step=AT),
    Faults().kill(at="vote", step=AT),
    Faults().kill(at="voted", step=AT),
    Faults().kill(at="applied", step=AT),
]
IN_A_PLAN_CHANGE = ["form", "agreed", "transfer", "transferred", "formed"]


def _name(faults: Faults) -> str:
    return "-".join(f"{fault.at}{fault.nth}" for fault in faults.script)


def recover(
    crew: Crew, data: int, pipeline: int, workers: Sequence[str], donors: Sequence[str] = ()
) -> None:
    """Publish the plan without the dead, and see the rest end as if nothing had happened."""
    started = time.monotonic()
    revision = crew.plan(data, pipeline, workers, donors=donors, reason=PlanReason.LOSS)
    migration = crew.migration(revision)
    seconds = time.monotonic() - started
    assert seconds < RECOVERY_SECONDS, crew
    assert migration.sudden
    assert migration.steps_replayed <= 1
    assert not crew.rollbacks
    settle(crew)


@pytest.mark.parametrize("victim", ["a", "d"])
@pytest.mark.parametrize("faults", IN_A_STEP, ids=_name)
def test_one_of_four_in_a_step(make_crew: MakeCrew, faults: Faults, victim: str) -> None:
    """``a`` is the grid's first worker, ``d`` the other replica's last stage."""
    crew = make_crew()
    crew.start(*"abcd", probes={victim: faults})
    crew.plan(2, 2, "abcd")
    crew.gone(victim)
    recover(crew, 1, 3, [name for name in "abcd" if name != victim])


@pytest.mark.parametrize("victim", ["a", "c", "d"])
@pytest.mark.parametrize("point", IN_A_PLAN_CHANGE)
def test_a_member_while_a_revision_forms(make_crew: MakeCrew, point: str, victim: str) -> None:
    """``a`` serves the store, ``c`` is a newcomer, ``d`` a donor.

    Once the epoch has formed, the donor is the only other holder of what ``a`` had kept: it has to
    give once more.
    """
    crew = make_crew()
    armed = crew.folder / "armed"
    crew.start(*"abcde", probes={victim: Faults().kill(at=point, once=armed)})
    crew.plan(3, 1, "abd")
    crew.wait_committed(2)
    armed.touch()
    crew.plan(1, 3, "abc", donors="d")
    crew.gone(victim)
    rest = [name for name in "abce" if name != victim]
    recover(crew, 1, 3, rest[:3], donors="" if victim == "d" else "d")


@pytest.mark.parametrize("point", ["backward", "reduced", "voted"])
def test_two_at_once(make_crew: MakeCrew, point: str) -> None:
    faults = Faults().kill(at=point, step=AT)
    crew = make_crew()
    crew.start(*"abcd", probes={"b": faults, "c": faults})
    crew.plan(2, 2, "abcd")
    # The second may have seen the first one's end before it came to the same point.
    await_true(lambda: len(crew.alive) < 4, "one is dead")
    crew.kill("b", "c")
    recover(crew, 1, 2, "ad")


def test_one_after_the_other_in_every_revision(make_crew: MakeCrew) -> None:
    """Every revision loses a member while it forms, until one is left."""
    crew = make_crew(micro_batches=5)
    points = dict(zip("bcde", ["form", "agreed", "transferred", "formed"], strict=True))
    armed = {name: crew.folder / f"armed-{name}" for name in points}
    faults = {name: Faults().kill(at=at, once=armed[name]) for name, at in points.items()}
    crew.start(*"abcde", probes=faults)
    crew.plan(5, 1, "abcde")
    crew.wait_committed(2)
    alive = list("abcde")
    for victim in points:
        armed[victim].touch()
        crew.plan(len(alive), 1, alive, reason=PlanReason.LOSS)
        crew.gone(victim)
        alive.remove(victim)
    recover(crew, 1, 1, alive)


def test_a_newcomer_after_a_revision_that_did_not_form(make_crew: MakeCrew) -> None:
    """Those that tried to meet before and those that did not must name their groups alike."""
    crew = make_crew()
    crew.start(*"abcde", probes={"c": Faults().kill(at="form")})
    crew.plan(2, 1, "ab")
    crew.wait_committed(2)
    crew.plan(3, 1, "abc")
    crew.gone("c")
    recover(crew, 2, 2, "daeb")


def test_the_first_worker_dies_before_it_has_said_where_to_meet(make_crew: MakeCrew) -> None:
    crew = make_crew()
    crew.start(*"abc")
    crew.plan(1, 2, "bc")
    crew.wait_committed(2)
    crew.kill("a")
    crew.plan(1, 3, "abc")
    recover(crew, 1, 2, "cb")


def test_a_newer_revision_comes_while_one_forms(make_crew: MakeCrew) -> None:
    """With every member alive: whoever is in the old meeting leaves it for the new one."""
    crew = make_crew()
    hold = crew.folder / "reached", crew.folder / "go"
    crew.start(*"abc", probes={"c": Faults().hold(*hold, at="form")})
    crew.plan(1, 2, "ab")
    crew.wait_committed(2)
    crew.plan(1, 3, "abc")
    await_true(hold[0].exists, "c is about to meet")
    second = crew.plan(2, 1, "ba")
    crew.migration(second)
    hold[1].touch()
    settle(crew)
