"""How workers end: when their supervisor dies, when told to quit, and on a full disk."""

from __future__ import annotations

import pytest
from crew import MakeCrew
from faults import Faults
from proof import assert_same_bits, assert_sound

from parcae_agent.checkpoint import complete_steps
from parcae_agent.settings import ExitCode
from parcae_api.plan import PlanReason

pytestmark = pytest.mark.processes

STEPS = 12


class TestOrphans:
    def test_while_waiting_for_a_plan(self, make_crew: MakeCrew) -> None:
        crew = make_crew()
        crew.start("a")
        crew.orphan("a")
        assert crew.gone("a") == 0

    def test_while_training_the_others_see_it_at_once(self, make_crew: MakeCrew) -> None:
        crew = make_crew()
        crew.start(*"abc")
        crew.plan(1, 3, "abc")
        crew.wait_committed(2)
        crew.orphan("b")
        crew.gone("b")
        crew.wait_broken(1, "a", "c")

    @pytest.mark.parametrize("name", ["a", "b"])
    def test_while_waiting_for_a_member_that_never_comes(
        self, make_crew: MakeCrew, name: str
    ) -> None:
        """``a`` serves the store, ``b`` waits in it; ``c`` stays away."""
        crew = make_crew()
        reached, never = crew.folder / "reached", crew.folder / "never"
        hold = Faults().hold(reached, never, at="form")
        crew.start(*"abc", probes={"c": hold})
        crew.plan(1, 3, "abc")
        crew.await_file(reached)
        crew.orphan(name)
        crew.gone(name)
        never.touch()


class TestQuit:
    @pytest.mark.parametrize("point", ["form", "agreed", "transferred", "formed"])
    def test_while_a_revision_forms(self, make_crew: MakeCrew, point: str) -> None:
        """One is held up there, all are told to quit: nobody waits for anybody."""
        crew = make_crew()
        reached, go = crew.folder / "reached", crew.folder / "go"
        crew.start(*"abc", probes={"b": Faults().hold(reached, go, at=point)})
        crew.plan(1, 3, "abc")
        crew.await_file(reached)
        crew.quit("a", "c")
        assert crew.gone("a") == 0
        assert crew.gone("c") == 0
        go.touch()
        crew.quit("b")
        assert crew.gone("b") == 0

    @pytest.mark.parametrize("grid", [(1, 1), (2, 1), (1, 3)])
    def test_in_the_middle_of_training(self, make_crew: MakeCrew, grid: tuple[int, int]) -> None:
        """Alone, too, where no collective could be broken."""
        crew = make_crew()
        names = "abc"[: grid[0] * grid[1]]
        crew.start(*names)
        crew.plan(*grid, names)
        crew.wait_committed(2)
        crew.quit(*names)
        for name in names:
            assert crew.gone(name) == 0

    def test_before_the_first_plan(self, make_crew: MakeCrew) -> None:
        crew = make_crew()
        crew.start("a")
        crew.quit("a")
        assert crew.gone("a") == 0


class TestFullDisk:
    def test_in_the_background_training_goes_on(self, make_crew: MakeCrew) -> None:
        """The limit is above the ledger's size and below that of a layer."""
        crew = make_crew("on_a_small_disk", limit=12_000, steps=1000, every_steps=2, layers=6)
        crew.start(*"ab")
        crew.plan(1, 2, "ab")
        crew.wait_committed(6)
        crew.plan(2, 1, "ab")
        crew.wait_committed(8)
        assert complete_steps(crew.checkpoints, crew.layers) == ()
        assert not crew.failures

    def test_for_the_final_state_it_is_said(self, make_crew: MakeCrew) -> None:
        crew = make_crew("on_a_small_disk", limit=12_000, steps=5, layers=6)
        crew.start("a")
        crew.plan(1, 1, "a")
        failure = crew.wait_failed()
        assert failure.message.startswith("the state of step 5 cannot be written to ")
        assert failure.message.endswith("File too large; free space or name another folder")
        assert failure.traceback == ""
        assert crew.gone("a") == ExitCode.USER_CODE
        assert_sound(crew, 5)

    def test_for_the_ledger_it_is_said(self, make_crew: MakeCrew) -> None:
        crew = make_crew()
        (crew.folder / "ledger").mkdir()
        (crew.folder / "ledger" / "b.0.jsonl").symlink_to("/dev/full")
        crew.start("a")
        crew.launch("b")
        failure = crew.wait_failed()
        assert "b.0.jsonl cannot be written: No space left on device; free" in failure.message
        assert crew.gone("b") == ExitCode.USER_CODE

    def test_for_the_ledger_while_training_it_is_said(self, make_crew: MakeCrew) -> None:
        crew = make_crew("on_a_small_disk", limit=2_000, steps=1000, layers=6)
        crew.start(*"ab")
        crew.plan(1, 2, "ab")
        failure = crew.wait_failed()
        assert ".0.jsonl cannot be written: File too large; free space" in failure.message
        crew.ledger()  # a line that was cut short does not spoil it


def test_the_last_step_and_a_checkpoint_are_due_together(make_crew: MakeCrew) -> None:
    crew = make_crew(steps=STEPS, every_steps=3)
    crew.start(*"ab")
    crew.plan(2, 1, "ab")
    crew.wait_saved(STEPS)
    assert complete_steps(crew.checkpoints, crew.layers)[-1] == STEPS
    assert_same_bits(crew, STEPS)


def test_one_dies_after_the_last_step(make_crew: MakeCrew) -> None:
    """Before it has saved: the others give its layers to one that can."""
    crew = make_crew(steps=STEPS)
    crew.start(*"abc", probes={"b": Faults().kill(at="applied", step=STEPS - 1)})
    crew.plan(2, 1, "ab")
    crew.gone("b")
    crew.plan(1, 2, "ca", reason=PlanReason.LOSS)
    crew.wait_saved(STEPS)
    assert_same_bits(crew, STEPS)
