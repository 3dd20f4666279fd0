"""No holder of a layer is left: all go back to the newest checkpoint, or to the start."""

from __future__ import annotations

import pytest
from crew import Crew, MakeCrew
from faults import Faults
from proof import settle

from parcae_agent.checkpoint import complete_steps
from parcae_api.events import RolledBack
from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes


def lose_a_stage(crew: Crew, *, step: int) -> None:
    crew.start(*"abcd", probes={"b": Faults().kill(at="reduced", step=step)})
    crew.plan(1, 3, "abc")
    crew.gone("b")


def rollbacks(crew: Crew, count: int = 1) -> list[RolledBack]:
    crew.wait(lambda: len(crew.rollbacks) >= count, f"{count} rollbacks")
    return crew.rollbacks


def test_to_the_newest_checkpoint(make_crew: MakeCrew) -> None:
    crew = make_crew(every_steps=3)
    lose_a_stage(crew, step=8)
    crew.wait_broken(1, "a", "c")
    newest = complete_steps(crew.checkpoints, crew.layers)[-1]
    revision = crew.plan(1, 3, "dca", reason=PlanReason.ROLLBACK)
    (rollback,) = rollbacks(crew)
    assert (rollback.from_step, rollback.to_step) == (8, newest)
    assert newest in (3, 6)
    assert crew.migration(revision).steps_replayed == 9 - newest
    settle(crew)


def test_to_the_start_where_there_is_no_checkpoint(make_crew: MakeCrew) -> None:
    crew = make_crew()
    lose_a_stage(crew, step=5)
    revision = crew.plan(1, 2, "dc", reason=PlanReason.LOSS)
    (rollback,) = rollbacks(crew)
    assert (rollback.from_step, rollback.to_step) == (5, 0)
    assert rollback.layers == ("embed", "block0", "block1", "head")
    assert crew.migration(revision).steps_replayed == 6
    settle(crew)


@pytest.mark.parametrize("point", ["agreed", "transferred", "formed"])
def test_the_meeting_that_rolls_back_breaks(make_crew: MakeCrew, point: str) -> None:
    """What was lost is still told by the epoch that forms in the end."""
    crew = make_crew(every_steps=3)
    armed = crew.folder / "armed"
    probes = {
        "b": Faults().kill(at="reduced", step=7),
        "d": Faults().kill(at=point, once=armed),
    }
    crew.start(*"abcde", probes=probes)
    crew.plan(1, 3, "abc")
    crew.gone("b")
    crew.wait_broken(1, "a", "c")
    armed.touch()
    crew.plan(1, 3, "dca", reason=PlanReason.ROLLBACK)
    crew.gone("d")
    crew.wait_first(crew.plan(1, 3, "eca", reason=PlanReason.ROLLBACK))
    # If it had formed, it was the dead worker's to tell, and 6 is what was reached since.
    assert [r.from_step for r in rollbacks(crew)] in ([7], [6] if point == "formed" else [7])
    settle(crew)


def test_everyone_dies(make_crew: MakeCrew) -> None:
    """New workers go on from what the dead had written."""
    crew = make_crew(every_steps=4)
    crew.start(*"ab")
    crew.plan(1, 2, "ab")
    crew.wait_committed(9)
    crew.kill("a", "b")
    crew.start(*"cd")
    crew.wait_first(crew.plan(2, 1, "cd", reason=PlanReason.LOSS))
    settle(crew)


def test_twice(make_crew: MakeCrew) -> None:
    """Also by workers whose modules have been through it: initial values must be built anew."""
    crew = make_crew()
    crew.start(*"abcd")
    crew.plan(1, 2, "ab")
    crew.wait_committed(2)
    crew.kill("b")
    crew.plan(1, 2, "ca", reason=PlanReason.LOSS)
    rollbacks(crew)
    crew.wait_committed(3)
    crew.kill("c")
    crew.plan(1, 2, "ad", reason=PlanReason.LOSS)
    assert [r.to_step for r in rollbacks(crew, 2)] == [0, 0]
    settle(crew)
