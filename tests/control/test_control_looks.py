"""When the loop looks again: rarely in quiet times, and in time for what is due."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import cast

import pytest
from control_site import Site, wait_until
from control_world import ToldPlanner, grid_of

from parcae_api.board import Entry
from parcae_api.errors import BoardError
from parcae_api.plan import Plan, PlanReason
from parcae_operator import attention
from parcae_operator.claim import Claim
from parcae_operator.observation import Observation

pytestmark = pytest.mark.processes


def test_a_job_that_trains_as_planned_is_looked_at_rarely_and_still_answered_at_once(
    site: Site,
) -> None:
    running = site.start(interval_s=60.0)
    site.ready("a", "b")
    site.await_plan(1)
    site.form()
    wait_until(lambda: running.loop._rest_s == 2.0, "nothing is left to do")
    site.ready("c")
    wait_until(lambda: running.loop._rest_s == 0.5, "its plan has to form")
    assert len(grid_of(site.await_plan(2))) == 3
    site.form()
    wait_until(lambda: running.loop._rest_s == 2.0, "nothing is left to do")
    site.lose("c")
    assert site.await_plan(3).reason is PlanReason.LOSS


def test_a_join_waits_for_another_and_the_loop_looks_again_when_that_does_not_come(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(attention, "LONGEST_S", 3600.0)  # nobody asks again by himself
    caplog.set_level(logging.INFO)
    planner = ToldPlanner([0.0, 1.0, 2.0, 3.0], pause_s=0.5)
    site.start(planner, interval_s=1e6)
    site.ready("a", "b")
    site.await_plan(1)
    site.form()
    site.starting("d")
    site.ready("c")
    assert grid_of(site.await_plan(2)) == [["a"], ["b"], ["c"]]
    told = [
        record.getMessage() for record in caplog.records if "could train" in record.getMessage()
    ]
    assert told == [
        "3x1 could train, but another instance starts: one change for all, or in 1.0 s without "
        "them, when the wait has cost as much as a change"
    ]


def test_a_join_that_was_not_published_is_tried_again_soon(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "LONGEST_S", 3600.0)  # nobody asks again by himself
    running = site.start(interval_s=1e6)
    site.ready("a", "b")
    site.await_plan(1)
    site.form()
    publish, failures = running.loop._swap, iter([BoardError("away")])

    def fails_once(plan: Plan, seen: Observation) -> Entry[Plan] | None:
        for error in failures:
            raise error
        return publish(plan, seen)

    monkeypatch.setattr(running.loop, "_swap", fails_once)
    site.ready("c")
    assert len(grid_of(site.await_plan(2))) == 3


def test_a_loop_that_was_reminded_rests_no_longer(site: Site) -> None:
    site.ready("a", "b")
    running = site.start(interval_s=60.0)
    site.await_plan(1)
    site.form()
    wait_until(lambda: running.loop._rest_s == 2.0, "nothing is left to do")
    running.stop()
    seen = replace(running.loop._observe(), more_of_the_same=True)
    assert running.loop._next_look_s(seen) == 2.0
    running.loop._attention.remind(time.time() + 1.0)
    assert 0.0 < running.loop._next_look_s(seen) <= 1.0


def test_a_loop_that_does_not_lead_rests(site: Site) -> None:
    class Follower:
        def holds(self, *_: object) -> bool:
            return False

    running = site.start()
    running.loop._claim = cast(Claim, Follower())
    running.loop._rest_s = 0.02  # as of the last look, when something was due
    running.loop.wake()
    wait_until(lambda: running.loop._rest_s == 0.5, "it looks now and then")
