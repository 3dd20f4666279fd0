"""Some committed a step and some had only reduced it: the latter roll forward, or all drop it."""

from __future__ import annotations

from pathlib import Path

import pytest
from crew import Crew, MakeCrew
from faults import Faults
from proof import settle

from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

AT = 4
TORN = RuntimeError("Connection closed by peer")


def half_committed(make_crew: MakeCrew, *, committed: str, dead: str, **more: Faults) -> Crew:
    """A grid 2x2 of ``abcd`` that breaks when only some have committed step ``AT``.

    The rest have reduced it and see their connections torn. Of those that committed, some die.
    """
    crew = make_crew()
    applied = {name: crew.folder / f"applied-{name}" for name in committed}
    probes = dict(more)
    for name in "abcd":
        faults = probes.get(name, Faults())
        if name in committed:
            faults = faults.hold(applied[name], applied[name], at="applied", step=AT)
            if name in dead:
                faults = faults.hold(applied[name], applied[committed[0]], at="applied", step=AT)
                faults = faults.kill(at="applied", step=AT)
        else:
            for path in applied.values():
                faults = faults.hold(path.with_suffix(f".{name}"), path, at="voted", step=AT)
            faults = faults.fail_with(TORN, at="voted", step=AT)
        probes[name] = faults
    crew.start(*"abcdef", probes=probes)
    crew.plan(2, 2, "abcd")
    for name in dead:
        crew.gone(name)
    crew.wait_broken(1, *[name for name in "abcd" if name not in dead])
    return crew


def test_who_had_not_applied_does_so_at_the_next_meeting(make_crew: MakeCrew) -> None:
    """``a`` applied, ``b`` and ``c`` had only reduced, ``d`` is dead."""
    crew = half_committed(make_crew, committed="ad", dead="d")
    revision = crew.plan(1, 3, "cba", reason=PlanReason.LOSS)
    assert crew.migration(revision).resumed_step == AT + 1
    settle(crew)


def test_if_nobody_left_had_applied_it_all_run_it_again(make_crew: MakeCrew) -> None:
    """``d`` applied and died with it: its line in the ledger must not count."""
    crew = half_committed(make_crew, committed="d", dead="d")
    revision = crew.plan(1, 3, "abc", reason=PlanReason.LOSS)
    assert crew.migration(revision).steps_replayed == 1
    assert crew.migration(revision).resumed_step == AT
    settle(crew)


@pytest.mark.parametrize("point", ["agreed", "transfer", "transferred", "formed"])
@pytest.mark.parametrize("victim", ["a", "e"])
def test_the_meeting_in_which_they_roll_forward_breaks(
    make_crew: MakeCrew, tmp_path: Path, point: str, victim: str
) -> None:
    """``a`` alone knew the outcome of the vote, ``e`` is a newcomer; either dies there.

    What the rest were told must be enough, whoever leads the next meeting.
    """
    armed = tmp_path / "armed"
    death = Faults().kill(at=point, once=armed)
    crew = half_committed(make_crew, committed="ad", dead="d", **{victim: death})
    armed.touch()
    crew.plan(2, 2, "ebca", reason=PlanReason.LOSS)
    crew.gone(victim)
    rest = [name for name in "efbca" if name != victim]
    revision = crew.plan(2, 2, rest, reason=PlanReason.LOSS)
    assert crew.migration(revision).resumed_step == AT + 1
    assert not crew.rollbacks
    settle(crew)


@pytest.mark.parametrize("name", ["a", "b"])
def test_one_that_breaks_before_the_meeting_comes_back_as_it_was(
    make_crew: MakeCrew, tmp_path: Path, name: str
) -> None:
    """``b`` still has its kept gradient, ``a`` its applied step, when the meeting is repeated."""
    armed = tmp_path / "armed"
    torn = Faults().fail_with(TORN, at="form", once=armed)
    crew = half_committed(make_crew, committed="ad", dead="d", **{name: torn})
    armed.touch()
    crew.wait_broken(crew.plan(1, 3, "abc", reason=PlanReason.LOSS), name)
    revision = crew.plan(1, 3, "bca", reason=PlanReason.LOSS)
    assert crew.migration(revision).resumed_step == AT + 1
    settle(crew)


@pytest.mark.parametrize(
    "point", ["step", "forward", "backward", "reduce", "reduced", "vote", "voted", "applied"]
)
def test_a_torn_connection_in_a_step(make_crew: MakeCrew, point: str) -> None:
    """Nobody dies: an error is raised in one worker, and all meet again."""
    crew = make_crew()
    crew.start(*"abc", probes={"b": Faults().fail_with(TORN, at=point, step=AT)})
    crew.plan(1, 2, "ab")
    crew.wait_broken(1, "a", "b")
    revision = crew.plan(1, 3, "cab", reason=PlanReason.LOSS)
    assert crew.migration(revision).steps_replayed <= 1
    assert not crew.rollbacks
    settle(crew)


@pytest.mark.parametrize("point", ["form", "agreed", "transfer", "transferred", "formed"])
def test_a_torn_connection_in_a_plan_change(make_crew: MakeCrew, point: str) -> None:
    crew = make_crew()
    armed = crew.folder / "armed"
    crew.start(*"abc", probes={"b": Faults().fail_with(TORN, at=point, once=armed)})
    crew.plan(1, 2, "ab")
    crew.wait_committed(2)
    armed.touch()
    crew.wait_broken(crew.plan(1, 3, "abc"), "b")
    revision = crew.plan(1, 3, "cab", reason=PlanReason.LOSS)
    assert crew.migration(revision).steps_replayed <= 1
    assert not crew.rollbacks
    settle(crew)
