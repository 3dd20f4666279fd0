"""What the operator remembers of the board."""

from __future__ import annotations

from control_world import Hand, World

from parcae_api.board_keys import KeyKind
from parcae_api.board_snapshot import BoardChange, BoardReset, BoardSnapshot
from parcae_api.events import Failed
from parcae_api.model import Contract
from parcae_operator.view import LATELY_S, BoardView


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def change(kind: KeyKind, model: Contract | None, name: str = "") -> BoardChange:
    return BoardChange(kind, name, model, 1)


def make_view() -> tuple[BoardView, Clock, list[KeyKind]]:
    seen: list[KeyKind] = []
    clock = Clock()
    return BoardView(on_change=lambda kind, model: seen.append(kind), clock=clock), clock, seen


def test_agents_come_and_go() -> None:
    view, _, seen = make_view()
    view.accept(change(KeyKind.AGENT, Hand("a").membership(), "a"))
    assert list(view.state().agents) == ["a"]
    view.accept(change(KeyKind.AGENT, None, "a"))
    view.accept(change(KeyKind.AGENT, None, "never there"))
    assert not view.state().agents
    assert seen == [KeyKind.AGENT] * 3


def test_a_state_does_not_change_any_more() -> None:
    view, _, _ = make_view()
    before = view.state()
    view.accept(change(KeyKind.AGENT, Hand("a").membership(), "a"))
    assert not before.agents


def test_an_older_plan_never_replaces_a_newer_one() -> None:
    view, _, _ = make_view()
    world = World().training(1, 1, "a")
    assert world.plan is not None
    newer = world.plan.model_copy(update={"revision": 2})
    view.published(newer)
    view.accept(change(KeyKind.PLAN, world.plan))
    view.accept(change(KeyKind.PLAN, None))
    assert view.state().plan == newer


def test_who_came_to_the_board_after_its_plan_was_lost_from_it() -> None:
    world = World().training(2, 1, "a", "b", spare=["c"])

    def whole(
        *came: int, plan: Contract | None = world.plan, since_unix_s: float | None = 90.0
    ) -> BoardView:
        since = {"on_board_since_unix_s": since_unix_s}
        hands = [
            BoardChange(
                KeyKind.AGENT, name, Hand(name).membership().model_copy(update=since), 90, at
            )
            for name, at in zip("abc", came, strict=True)
        ]
        view, _, _ = make_view()
        planned = BoardChange(KeyKind.PLAN, "", plan, 50, 10)
        view.accept_all(BoardReset(BoardSnapshot({}, 99), (*hands, planned)))
        return view

    assert whole(1, 2, 3).state().returned == frozenset()
    assert whole(1, 60, 70).state().returned == {"b"}  # the spare is in no grid
    view = whole(1, 60, 70)
    view.accept(change(KeyKind.AGENT, None, "b"))
    assert view.state().returned == frozenset()
    assert whole(60, 60, 60, plan=None).state().returned == frozenset()
    # Who came back long ago says nothing of who is away now; an older agent does not say.
    assert whole(1, 60, 70, since_unix_s=100.0 - LATELY_S - 1).state().returned == frozenset()
    assert whole(1, 60, 70, since_unix_s=None).state().returned == {"b"}
    view = whole(60, 60, 60)
    # A store that began anew counts from the start.
    view.accept_all(BoardReset(BoardSnapshot({}, 5), ()))
    assert view.state().returned == frozenset()
    view = whole(60, 60, 60)
    assert world.plan is not None
    view.published(world.plan.model_copy(update={"revision": 2}))
    assert view.state().returned == frozenset()  # all were there to be planned for


def test_a_revision_is_broken_from_the_first_member_that_says_so() -> None:
    view, clock, _ = make_view()
    world = World().training(2, 1, "a", "b", spare=["c"])
    assert world.plan is not None
    view.published(world.plan)
    world.break_("c")  # no member
    view.accept(change(KeyKind.AGENT, world.hands["c"].membership(), "c"))
    assert view.state().broken_since_unix_s is None
    world.break_("a")
    view.accept(change(KeyKind.AGENT, world.hands["a"].membership(), "a"))
    clock.now = 101.0
    world.break_("b")
    view.accept(change(KeyKind.AGENT, world.hands["b"].membership(), "b"))
    assert view.state().broken_since_unix_s == 100.0
    view.published(world.plan.model_copy(update={"revision": 2}))
    assert view.state().broken_since_unix_s is None


def test_it_is_filled_by_the_whole_board_and_not_by_a_part() -> None:
    view, _, seen = make_view()
    view.accept(change(KeyKind.AGENT, Hand("a").membership(), "a"))
    assert not view.is_filled
    changes = (
        change(KeyKind.AGENT, None, "a"),
        change(KeyKind.AGENT, Hand("b").membership(), "b"),
        change(KeyKind.FAILURE, Failed(at_unix_s=1.0, worker="b/0", step=1, message="m"), "b/0"),
    )
    view.accept_all(BoardReset(BoardSnapshot({}, 3), changes))
    assert view.is_filled
    assert list(view.state().agents) == ["b"]
    assert [failure.message for failure in view.state().failures] == ["m"]
    assert seen == [KeyKind.AGENT, KeyKind.AGENT, KeyKind.AGENT, KeyKind.FAILURE]
