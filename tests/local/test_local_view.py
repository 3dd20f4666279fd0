"""What a person sees: on a terminal of 100x30, and as plain lines."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from parcae_api.events import InstanceLost, Migration, MigrationKind, NoticeGiven, Planned
from parcae_api.membership import Notice
from parcae_api.plan import PlanReason
from parcae_cli.local.describe import describe, size
from parcae_cli.local.view import Frame, LiveView, NodeView, PlainView, make_view


def frame(nodes: int = 8, step: int = 12) -> Frame:
    return Frame(
        title="parcae local: gpt",
        trace_seconds=600.0,
        trace_duration_seconds=3600.0,
        nodes=tuple(
            NodeView(
                f"spot-{k}",
                ["booting", "starting", "standby", "training", "leaving"][k % 5],
                Notice(deadline_unix_s=time.time() + 3, source="t") if k % 5 == 4 else None,
                f"{k}·0",
            )
            for k in range(nodes)
        ),
        configuration="4x2",
        revision=7,
        why="because",
        step=step,
        loss=2.5,
        samples_per_second=123.4,
    )


PLANNED = Planned(
    at_unix_s=1.0,
    revision=7,
    reason=PlanReason.NOTICE,
    why="3x2 on 6 workers: 45 samples/s predicted, next best 2x3 with 42 " * 2,
    configuration="3x2",
    instances=6,
)


@pytest.mark.parametrize("nodes", [0, 1, 8, 16])
def test_panel_fits_a_terminal(nodes: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, height=30, force_terminal=True, color_system=None)
    view = LiveView(console, started_unix_s=0.0)
    for _ in range(20):
        view.event(PLANNED)
    for step in range(60):
        view.show(frame(nodes, step))
    view.close()
    drawn = Console(file=io.StringIO(), width=100, height=30, record=True)
    drawn.print(view._draw(frame(nodes)))
    lines = drawn.export_text().splitlines()
    assert len(lines) <= 29
    assert all(len(line) <= 100 for line in lines)
    assert any("4x2" in line for line in lines)


def test_plain_lines_elsewhere() -> None:
    out = io.StringIO()
    view = make_view(Console(file=out), started_unix_s=0.0)
    assert isinstance(view, PlainView)
    view.event(PLANNED)
    view.show(frame())
    view.show(frame())
    lines = out.getvalue().splitlines()
    assert len(lines) == 2, "progress is said now and then, not at every frame"
    assert "revision 7 (notice): 3x2 on 6 workers" in lines[0]
    assert "8 instances, 4x2, revision 7, step 12, loss 2.5000, 123 samples/s" in lines[1]


def test_events_as_sentences() -> None:
    migration = Migration(
        at_unix_s=1.0,
        revision=3,
        kind=MigrationKind.PIPELINE,
        reason=PlanReason.LOSS,
        resumed_step=9,
        bytes_moved=2_500_000,
        pause_seconds=0.12,
        transfer_seconds=0.01,
        steps_replayed=1,
        sudden=True,
    )
    assert describe(migration) == (
        "revision 3 trains from step 9: re-partitioned (2.5 MB), pause 120 ms, 1 step replayed"
    )
    notice = NoticeGiven(
        at_unix_s=1.0, incarnation="a", node="spot-1", deadline_unix_s=5.0, source="t"
    )
    assert describe(notice) == "spot-1 got notice: gone in 4.0 s"
    lost = InstanceLost(at_unix_s=1.0, incarnation="a", node="spot-1", noticed=False)
    assert describe(lost) == "spot-1 is gone without notice"


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e12, "2.5 TB")]
)
def test_sizes(nbytes: float, text: str) -> None:
    assert size(nbytes) == text
