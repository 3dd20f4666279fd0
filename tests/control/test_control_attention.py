"""A standby makes nobody ask the planner at every look."""

from __future__ import annotations

from control_world import World

from parcae_operator.attention import LONGEST_S, Attention


def _looks(world: World, attention: Attention) -> bool:
    """Whether this look asks for a better layout."""
    return not attention.on(world.observe()).more_of_the_same


def test_the_same_instances_are_asked_about_now_and_then() -> None:
    world, attention = World().training(1, 2, "a", "b", spare=["c"]), Attention(60.0)
    assert _looks(world, attention)
    assert not _looks(world.wait(LONGEST_S - 0.1), attention)
    assert _looks(world.wait(0.2), attention)


def test_whoever_comes_is_asked_about_at_once() -> None:
    world, attention = World().training(1, 2, "a", "b"), Attention(60.0)
    assert _looks(world, attention)
    assert not _looks(world.wait(0.1), attention)
    assert _looks(world.ready("c"), attention)


def test_a_plan_that_has_formed_is_looked_at_anew() -> None:
    world, attention = World().training(1, 2, "a", "b"), Attention(60.0)
    world.ready("c").publish()
    assert _looks(world, attention)
    assert _looks(world.obey(), attention)


def test_a_clock_that_goes_back_stops_nothing() -> None:
    world, attention = World().training(1, 2, "a", "b", spare=["c"]), Attention(60.0)
    assert _looks(world, attention)
    assert _looks(world.wait(-3600), attention)
