"""Who comes and goes, told once: an instance that is announced to go, but not one given back."""

from __future__ import annotations

from control_world import World

from parcae_api.events import AnyEvent, NoticeGiven
from parcae_operator.news import News


def test_a_pod_that_is_given_back_has_no_notice() -> None:
    events: list[AnyEvent] = []
    news, world = News(events.append), World().training(2, 1, "a", "b")
    news.saw(world.observe())
    news.gave_back(("b",))
    world.notice("a").notice("b")
    for _ in range(2):
        news.saw(world.observe())
    assert [e.incarnation for e in events if isinstance(e, NoticeGiven)] == ["a"]
