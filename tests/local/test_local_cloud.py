"""The fake cloud's script: what happens when, in scaled time."""

from __future__ import annotations

import threading

from crew import await_true
from hypothesis import given
from hypothesis import strategies as st

from parcae_cli.local.cloud import Cue, FakeCloud, _Kind, script
from parcae_traces import Life, Trace


def trace(*lives: Life, duration_s: float = 1000.0, notice_s: float = 120.0) -> Trace:
    return Trace(
        name="t",
        source="a test",
        duration_s=duration_s,
        capacity=8,
        lives=lives,
        notice_s=notice_s,
    )


def test_notice_comes_as_early_as_recorded_in_scaled_time() -> None:
    cues = script(trace(Life(1, 0.0, 600.0)), speedup=30, unnoticed=0, seed=0)
    assert cues == [
        Cue(0.0, _Kind.UP, "spot-1"),
        Cue(16.0, _Kind.NOTICE, "spot-1", 20.0),
        Cue(20.0, _Kind.DOWN, "spot-1"),
    ]


def test_a_removals_own_notice_wins() -> None:
    cues = script(trace(Life(1, 0.0, 600.0, 30.0)), speedup=1, unnoticed=0, seed=0)
    assert [c.at_s for c in cues if c.kind is _Kind.NOTICE] == [570.0]


def test_notice_is_never_before_the_join() -> None:
    cues = script(trace(Life(1, 100.0, 150.0)), speedup=1, unnoticed=0, seed=0)
    assert [c.at_s for c in cues if c.kind is _Kind.NOTICE] == [100.0]


def test_no_notice_where_the_recording_has_none() -> None:
    cues = script(trace(Life(1, 0.0, 600.0, 0.0)), speedup=1, unnoticed=0, seed=0)
    assert [c.kind for c in cues] == [_Kind.UP, _Kind.DOWN]


def test_losses_come_before_joins_of_the_same_moment() -> None:
    cues = script(trace(Life(1, 0.0, 600.0, 0.0), Life(2, 600.0)), speedup=1, unnoticed=0, seed=0)
    assert [(c.kind, c.node) for c in cues[1:]] == [(_Kind.DOWN, "spot-1"), (_Kind.UP, "spot-2")]


@given(share=st.sampled_from([0.0, 0.25, 0.5, 1.0]), seed=st.integers(0, 5))
def test_share_of_unnoticed(share: float, seed: int) -> None:
    lives = tuple(Life(k, 0.0, 500.0) for k in range(8))
    cues = script(trace(*lives), speedup=1, unnoticed=share, seed=seed)
    assert cues == script(trace(*lives), speedup=1, unnoticed=share, seed=seed)
    notices = sum(c.kind is _Kind.NOTICE for c in cues)
    if share in (0.0, 1.0):
        assert notices == (8 if share == 0.0 else 0)
    assert sum(c.kind is _Kind.DOWN for c in cues) == 8


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def node_up(self, node: str) -> None:
        self.lines.append(f"up {node}")

    def node_noticed(self, node: str, deadline_unix_s: float) -> None:
        self.lines.append(f"notice {node}")

    def node_down(self, node: str) -> None:
        self.lines.append(f"down {node}")


def test_plays_all_of_it_and_says_so() -> None:
    log = Log()
    cues = script(trace(Life(1, 0.0, 600.0)), speedup=6000, unnoticed=0, seed=0)
    cloud = FakeCloud(cues, 0.12, log)
    cloud.start()
    assert cloud.is_over.wait(10)
    assert log.lines == ["up spot-1", "notice spot-1", "down spot-1"]
    cloud.stop()


def test_stops_at_once() -> None:
    log = Log()
    cloud = FakeCloud([Cue(0.0, _Kind.UP, "a"), Cue(3600.0, _Kind.DOWN, "a")], 7200.0, log)
    cloud.start()
    cloud.stop()
    assert not cloud.is_over.is_set()
    assert threading.active_count() < 50
    assert "down a" not in log.lines


def test_a_cloud_that_cannot_go_on_says_why() -> None:
    class Broken(Log):
        def node_up(self, node: str) -> None:
            raise ZeroDivisionError("a mistake")

    cloud = FakeCloud([Cue(0.0, _Kind.UP, "a")], 0.1, Broken())
    cloud.start()
    await_true(lambda: cloud.error is not None, "it has failed")
    assert isinstance(cloud.error, ZeroDivisionError)
    assert not cloud.is_over.is_set()
    cloud.stop()
