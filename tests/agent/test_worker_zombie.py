"""A worker that is stopped like a lost host: the others go on; when it wakes, it is fenced out."""

from __future__ import annotations

import time

import pytest
from crew import Crew, MakeCrew
from faults import Faults
from proof import settle

from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

BREAK_SECONDS = 1.0
"""From the plan without the lost one until all are out of their collectives: 5-60 ms when idle."""


def go_on_without(crew: Crew, lost: str, alive: str) -> int:
    """Publish a plan without the lost one; how long the blocked collectives take to break."""
    crew.stopped(lost)
    started = time.monotonic()
    revision = crew.plan(1, len(alive), alive, reason=PlanReason.LOSS)
    crew.wait_broken(1, *alive)
    assert time.monotonic() - started < BREAK_SECONDS, crew
    crew.wait_first(revision)
    return revision


@pytest.mark.parametrize("point", ["forward", "backward", "reduce", "vote", "voted"])
def test_a_zombie_is_fenced_and_comes_back_with_nothing(make_crew: MakeCrew, point: str) -> None:
    """Stopped before, in or after a vote: what it does when it wakes must not count."""
    crew = make_crew()
    crew.start(*"abcd", probes={"d": Faults().stop(at=point, step=4)})
    crew.plan(2, 2, "abcd")
    revision = go_on_without(crew, "d", "abc")
    crew.wait_committed(6)
    crew.wake("d")
    crew.wait_broken(1, "d")
    crew.wait_idle(revision, "d")
    back = crew.plan(2, 2, "dbca")
    migration = crew.migration(back)
    assert migration.bytes_moved > 0
    assert migration.resumed_step > 6
    settle(crew)


def test_the_first_worker_is_stopped(make_crew: MakeCrew) -> None:
    """It serves the epoch's store, too."""
    crew = make_crew()
    crew.start(*"abcd", probes={"a": Faults().stop(at="forward", step=4)})
    crew.plan(2, 2, "abcd")
    revision = go_on_without(crew, "a", "bcd")
    crew.wake("a")
    crew.wait_idle(revision, "a")
    settle(crew)


@pytest.mark.parametrize("point", ["form", "agreed", "transfer", "transferred", "formed"])
@pytest.mark.parametrize("lost", ["a", "d"])
def test_a_member_is_stopped_while_a_revision_forms(
    make_crew: MakeCrew, point: str, lost: str
) -> None:
    """``a`` serves the store; the others wait in it, or in a collective, and must get out."""
    crew = make_crew()
    armed = crew.folder / "armed"
    crew.start(*"abcd", probes={lost: Faults().stop(at=point, once=armed)})
    crew.plan(3, 1, "abd")
    crew.wait_committed(2)
    armed.touch()
    crew.plan(1, 4, "abcd")
    crew.stopped(lost)
    alive = [name for name in "abcd" if name != lost]
    started = time.monotonic()
    revision = crew.plan(1, 3, alive, reason=PlanReason.LOSS)
    crew.wait_first(revision)
    assert time.monotonic() - started < 2 * BREAK_SECONDS, crew
    crew.wait_committed(5)
    crew.wake(lost)
    crew.wait_idle(revision, lost)
    crew.wait_first(crew.plan(2, 2, "dacb"))
    settle(crew)


def test_the_others_are_gone_when_it_wakes(make_crew: MakeCrew) -> None:
    """Then the zombie's state, though old, is the newest there is."""
    crew = make_crew()
    crew.start(*"abc", probes={"b": Faults().stop(at="reduced", step=4)})
    crew.plan(2, 1, "ab")
    crew.stopped("b")
    crew.plan(1, 1, "a", reason=PlanReason.LOSS)
    crew.wait_committed(7)
    crew.kill("a")
    crew.wake("b")
    crew.wait_broken(1, "b")
    revision = crew.plan(2, 1, "cb", reason=PlanReason.LOSS)
    assert crew.migration(revision).resumed_step == 4
    settle(crew)
