"""Some committed a step and some had only reduced it: the latter roll forward, or all drop it."""

from __future__ import annotations

import pytest
from crew import Crew, MakeCrew
from faults import Faults
from proof import assert_same_bits

from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

STEPS = 9
AT = 4
TORN = RuntimeError("Connection closed by peer")


def finish(crew: Crew, revision: int) -> None:
    crew.wait_first(revision)
    crew.wait_saved(STEPS)
    assert_same_bits(crew, STEPS)


def broken_epoch(make_crew: MakeCrew, **probes: Faults) -> Crew:
    """A grid 2x2 of ``abcd`` in which something goes wrong in step ``AT``."""
    crew = make_crew(steps=STEPS)
    crew.start(*"abcdef", probes=probes)
    crew.plan(2, 2, "abcd")
    return crew


def test_who_had_not_applied_does_so_at_the_next_meeting(make_crew: MakeCrew) -> None:
    """``a`` applied, ``b`` and ``c`` had only reduced, ``d`` is dead."""
    torn = Faults().fail_with(TORN, at="voted", step=AT)
    crew = broken_epoch(make_crew, b=torn, c=torn, d=Faults().kill(at="applied", step=AT))
    crew.gone("d")
    crew.wait_broken(1, "a", "b", "c")
    revision = crew.plan(1, 3, "cba", reason=PlanReason.LOSS)
    assert crew.migration(revision).steps_replayed == 0
    assert crew.migration(revision).resumed_step == AT + 1
    finish(crew, revision)


def test_if_nobody_left_had_applied_it_all_run_it_again(make_crew: MakeCrew) -> None:
    """``d`` applied and died with it: its line in the ledger must not count."""
    torn = Faults().fail_with(TORN, at="voted", step=AT)
    crew = broken_epoch(make_crew, a=torn, b=torn, c=torn, d=Faults().kill(at="applied", step=AT))
    crew.gone("d")
    crew.wait_broken(1, "a", "b", "c")
    revision = crew.plan(1, 3, "abc", reason=PlanReason.LOSS)
    assert crew.migration(revision).steps_replayed == 1
    assert crew.migration(revision).resumed_step == AT
    finish(crew, revision)


@pytest.mark.parametrize("point", ["agreed", "transfer", "transferred", "formed"])
@pytest.mark.parametrize("victim", ["a", "e"])
def test_the_meeting_in_which_they_roll_forward_breaks(
    make_crew: MakeCrew, point: str, victim: str
) -> None:
    """``a`` alone knew the outcome of the vote, ``e`` is a newcomer; either dies there.

    What the rest were told must be enough, whoever leads the next meeting.
    """
    torn = Faults().fail_with(TORN, at="voted", step=AT)
    crew = make_crew(steps=STEPS)
    armed = crew.folder / "armed"
    death = Faults().kill(at=point, once=armed)
    probes = {"b": torn, "c": torn, "d": Faults().kill(at="applied", step=AT), victim: death}
    crew.start(*"abcdef", probes=probes)
    crew.plan(2, 2, "abcd")
    crew.gone("d")
    crew.wait_broken(1, "a", "b", "c")
    armed.touch()
    crew.plan(2, 2, "ebca", reason=PlanReason.LOSS)
    crew.gone(victim)
    rest = [name for name in "efbca" if name != victim]
    revision = crew.plan(2, 2, rest, reason=PlanReason.LOSS)
    assert crew.migration(revision).resumed_step == AT + 1
    assert not crew.rollbacks
    finish(crew, revision)


@pytest.mark.parametrize("name", ["a", "b"])
def test_one_that_breaks_before_the_meeting_comes_back_as_it_was(
    make_crew: MakeCrew, name: str
) -> None:
    """``b`` still has its kept gradient, ``a`` its applied step, when the meeting is repeated."""
    torn = Faults().fail_with(TORN, at="voted", step=AT)
    crew = make_crew(steps=STEPS)
    armed = crew.folder / "armed"
    probes = {"b": torn, "c": torn, "d": Faults().kill(at="applied", step=AT)}
    probes[name] = probes.get(name, Faults()).fail_with(TORN, at="form", once=armed)
    crew.start(*"abcd", probes=probes)
    crew.plan(2, 2, "abcd")
    crew.gone("d")
    crew.wait_broken(1, "a", "b", "c")
    armed.touch()
    crew.wait_broken(crew.plan(1, 3, "abc", reason=PlanReason.LOSS), name)
    revision = crew.plan(1, 3, "bca", reason=PlanReason.LOSS)
    assert crew.migration(revision).resumed_step == AT + 1
    finish(crew, revision)


@pytest.mark.parametrize(
    "point",
    ["step", "forward", "backward", "reduce", "reduced", "vote", "voted", "applied"]
    + ["form", "agreed", "transfer", "transferred", "formed"],
)
def test_a_torn_connection_at_any_point_costs_nothing_but_the_step(
    make_crew: MakeCrew, point: str
) -> None:
    """Nobody dies: an error is raised in one worker, and all meet again."""
    crew = make_crew(steps=STEPS)
    armed = crew.folder / "armed"
    crew.start(*"abc", probes={"b": Faults().fail_with(TORN, at=point, once=armed)})
    crew.plan(1, 2, "ab")
    crew.wait_committed(2)
    armed.touch()
    crew.wait_broken(crew.plan(1, 3, "abc"), "b")
    revision = crew.plan(1, 3, "cab", reason=PlanReason.LOSS)
    assert crew.migration(revision).steps_replayed <= 1
    assert not crew.rollbacks
    finish(crew, revision)
