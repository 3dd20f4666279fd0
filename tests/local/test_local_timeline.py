"""The picture of a run, and the table."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.image
import pytest
from rich.console import Console

from parcae_agent.ledger import CommittedStep, Ledger
from parcae_api.events import (
    AnyEvent,
    InstanceLost,
    Migration,
    MigrationKind,
    NoticeGiven,
    RolledBack,
)
from parcae_api.job import Reduction
from parcae_api.plan import PlanReason
from parcae_cli.local.recorder import Count, Recorder
from parcae_cli.local.report import summary_table
from parcae_cli.local.summary import Verification, summarize
from parcae_cli.local.timeline import draw_timeline

STARTED = 1_000_000.0


def migration(at: float, *, sudden: bool = False) -> Migration:
    return Migration(
        at_unix_s=STARTED + at,
        revision=2,
        kind=MigrationKind.PIPELINE,
        reason=PlanReason.LOSS if sudden else PlanReason.JOIN,
        resumed_step=1,
        bytes_moved=1_500_000,
        pause_seconds=0.25,
        transfer_seconds=0.1,
        steps_replayed=int(sudden),
        sudden=sudden,
    )


EVENTS: list[AnyEvent] = [
    NoticeGiven(at_unix_s=STARTED + 20, incarnation="a", node="a", deadline_unix_s=0.0, source="t"),
    migration(21),
    InstanceLost(at_unix_s=STARTED + 24, incarnation="a", node="a", noticed=True),
    InstanceLost(at_unix_s=STARTED + 30, incarnation="b", node="b", noticed=False),
    migration(31, sudden=True),
    RolledBack(at_unix_s=STARTED + 31, revision=3, from_step=20, to_step=10, layers=("a",)),
]


def steps(count: int) -> list[CommittedStep]:
    names = ["4x1", "2x3", "1x2"]
    return [
        CommittedStep(k, 1 + k // 20, names[k // 20 % 3], STARTED + 10 + k / 2, 5.0 - k / 50)
        for k in range(count)
    ]


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    recorder = Recorder(tmp_path / "events.jsonl", started_unix_s=STARTED)
    recorder.close()
    return recorder


def draw(recorder: Recorder, count: int, path: Path, speedup: float | None = 60.0) -> None:
    draw_timeline(
        path, title="a test", recorder=recorder, steps=steps(count), batch=32, speedup=speedup
    )
    height, width, _ = matplotlib.image.imread(path).shape
    assert (width, height) == (1430, 990)


def test_a_run_with_everything_in_it(recorder: Recorder, tmp_path: Path) -> None:
    recorder.events = EVENTS
    recorder.counts = [Count(8.0, 6), Count(24.0, 5), Count(30.0, 4)]
    recorder.playing_since_s = 8.0
    draw(recorder, 60, tmp_path / "timeline.png")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_run_that_hardly_began(recorder: Recorder, tmp_path: Path, count: int) -> None:
    draw(recorder, count, tmp_path / "timeline.png", speedup=None)


def test_steps_whose_loss_is_not_known(recorder: Recorder, tmp_path: Path) -> None:
    unknown = [CommittedStep(k, 1, "1x1", STARTED + k, None) for k in range(3)]
    path = tmp_path / "timeline.png"
    draw_timeline(path, title="t", recorder=recorder, steps=unknown, batch=1, speedup=None)
    assert path.exists()


# The table.


def table(recorder: Recorder, verification: Verification | None, reduction: Reduction) -> str:
    ledger = Ledger(steps(60), 1920, 0, 0)
    summary = summarize(
        recorder, ledger, outcome="all is well", digests=None, verification=verification
    )
    console = Console(file=io.StringIO(), width=80, record=True)
    console.print(summary_table(summary, reduction))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert all(len(line) <= 80 for line in lines)
    return "\n".join(lines)


def test_the_table_tells_the_main_numbers(recorder: Recorder) -> None:
    recorder.events = EVENTS
    same = Verification(True, 0, 0.0, 3.82, True, 12.3)
    text = " ".join(table(recorder, same, Reduction.EXACT).split())
    assert "outcome all is well" in text
    assert "60 committed, 1 replayed, 64.0 samples/s" in text
    assert "1920 committed, 0 lost, 0 repeated" in text
    assert "5.0000 → 3.8200" in text
    assert "1 noticed, 1 sudden" in text
    assert "re-partitioned 2×, 3.0 MB moved, pause 250 ms, at most 250 ms" in text
    assert "yes: all losses and the final state (12 s to check)" in text
    assert "regrouped" not in text


def test_the_table_tells_how_far_off_a_run_is(recorder: Recorder) -> None:
    other = Verification(False, 17, 1.5e-4, 3.8215, False, 12.3)
    text = " ".join(table(recorder, other, Reduction.FAST).split())
    assert "no, as expected of reduction fast: 17 losses differ, by up to 1.5e-04" in text
    assert "the final loss is 3.8200, undisturbed 3.8215" in text
    assert "as expected" not in table(recorder, other, Reduction.EXACT)
    assert "not checked" in table(recorder, None, Reduction.EXACT)


def test_a_run_that_trained_nothing_has_a_short_table(recorder: Recorder) -> None:
    summary = summarize(
        recorder, Ledger([], 0, 0, 0), outcome="interrupted", digests=None, verification=None
    )
    console = Console(file=io.StringIO(), width=80, record=True)
    console.print(summary_table(summary, Reduction.EXACT))
    assert console.export_text().split() == ["outcome", "interrupted"]
