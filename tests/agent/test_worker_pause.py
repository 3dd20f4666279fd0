"""A plan without a layout: state is saved and kept, and training goes on from it."""

from __future__ import annotations

import pytest
from crew import MakeCrew
from faults import Faults
from proof import assert_same_bits, settle

from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

STEPS = 100


def test_a_pause_saves_and_the_memory_is_enough_to_go_on(make_crew: MakeCrew) -> None:
    crew = make_crew()
    crew.start(*"abcd")
    crew.plan(2, 2, "abcd")
    crew.wait_committed(3)
    revision = crew.pause()
    crew.wait_idle(revision, *"abcd")
    step = crew.wait_saved()
    assert_same_bits(crew, step)
    resumed = crew.plan(1, 4, "dcba", reason=PlanReason.JOIN)
    migration = crew.migration(resumed)
    assert (migration.resumed_step, migration.steps_replayed) == (step, 0)
    settle(crew)


def test_the_holders_die_while_it_is_paused(make_crew: MakeCrew) -> None:
    crew = make_crew()
    crew.start(*"abcd")
    crew.plan(1, 2, "ab")
    crew.wait_committed(3)
    crew.pause()
    step = crew.wait_saved()
    crew.kill("a", "b")
    crew.plan(2, 1, "cd", reason=PlanReason.JOIN)
    assert settle(crew) > step
    assert not crew.rollbacks
    assert {line.step: line.revision for line in crew.ledger().steps}[step - 1] == 1


def test_one_of_the_holders_dies_while_it_is_paused(make_crew: MakeCrew) -> None:
    """What it alone held comes back from the file, at the very step that the others hold."""
    crew = make_crew()
    crew.start(*"abc")
    crew.plan(1, 2, "ab")
    crew.wait_committed(3)
    crew.pause()
    step = crew.wait_saved()
    crew.kill("b")
    revision = crew.plan(1, 2, "ca", reason=PlanReason.JOIN)
    assert crew.migration(revision).resumed_step == step
    assert crew.migration(revision).steps_replayed == 0
    settle(crew)


def test_a_pause_after_a_loss(make_crew: MakeCrew) -> None:
    """Too few are left: they keep what they have, the broken step's gradient included."""
    crew = make_crew()
    crew.start(*"abc", probes={"b": Faults().kill(at="voted", step=5)})
    crew.plan(1, 2, "ab")
    crew.gone("b")
    revision = crew.pause(PlanReason.LOSS)
    crew.wait_idle(revision, "a", "c")
    crew.plan(1, 2, "ca", reason=PlanReason.JOIN)
    settle(crew)


def test_a_pause_before_anything_has_begun(make_crew: MakeCrew) -> None:
    crew = make_crew()
    crew.start("a")
    crew.wait_idle(crew.pause(), "a")
    assert not crew.checkpoints.exists()
    crew.plan(1, 1, "a")
    settle(crew)


def test_pausing_twice_and_finishing(make_crew: MakeCrew) -> None:
    crew = make_crew(steps=STEPS)
    crew.start(*"ab")
    crew.plan(2, 1, "ab")
    crew.wait_committed(-1)
    crew.pause()
    crew.wait_idle(crew.pause(), *"ab")
    crew.plan(1, 2, "ab", reason=PlanReason.JOIN)
    crew.wait_saved(STEPS)
    crew.wait_idle(crew.pause(PlanReason.FINISH), *"ab")
    assert_same_bits(crew, STEPS)
