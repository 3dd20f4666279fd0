"""What a person sees: on a terminal of 100x30, and as plain lines."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest
from rich.console import Console

from parcae_api.events import InstanceLost, Migration, MigrationKind, NoticeGiven, Planned
from parcae_api.membership import Notice
from parcae_api.plan import Cell, PlanReason
from parcae_cli.local.describe import describe, size
from parcae_cli.local.frame import Frame, NodeView
from parcae_cli.local.panel import Panel
from parcae_cli.local.view import LiveView, PlainView, make_view

STATES = ("booting", "starting", "standby", "training", "leaving", "gone")


def frame(nodes: int = 8, step: int = 12, *, stages: int = 2) -> Frame:
    """Half of the instances in the grid, the others in all states in turn."""

    def node(k: int) -> NodeView:
        state = "training" if k < nodes // 2 else STATES[k % len(STATES)]
        leaves = state in ("leaving", "gone")
        notice = Notice(deadline_unix_s=time.time() + 3, source="t") if leaves else None
        cell = Cell(k // stages, k % stages) if state == "training" else None
        return NodeView(f"spot-{k}", state, notice, cell)

    return Frame(
        title="parcae local: gpt",
        trace_seconds=600.0,
        trace_duration_seconds=3600.0,
        nodes=tuple(node(k) for k in range(nodes)),
        configuration="4x2",
        revision=7,
        phase="Training",
        why="because it is the fastest",
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


def draw(panel: Panel, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, record=True)
    console.print(panel)
    return console.export_text().splitlines()


@pytest.mark.parametrize("nodes", [0, 1, 8, 40, 300])
@pytest.mark.parametrize(("width", "height"), [(100, 30), (80, 24), (60, 12), (200, 80), (30, 5)])
def test_the_panel_fits_whatever_terminal(nodes: int, width: int, height: int) -> None:
    panel = Panel(started_unix_s=0.0)
    empty = draw(panel, width, height)
    for _ in range(60):
        panel.add_event(PLANNED)
    for step in range(500):
        panel.show(frame(nodes, step))
    lines = draw(panel, width, height)
    assert len(lines) <= max(8, height - 1)
    assert all(len(line) == width for line in lines)
    assert len(lines) == len(empty), "it is always as high: nothing jumps"


def test_the_panel_shows_the_grid_row_by_row() -> None:
    panel = Panel(started_unix_s=0.0)
    panel.show(frame(8))
    panel.add_event(PLANNED)
    text = "\n".join(draw(panel, 100, 30))
    assert "Training   4×2   revision 7   step 12   loss 2.5000   samples/s 123" in text
    assert "because it is the fastest" in text
    assert "pipeline 0   ● spot-0 → ● spot-1" in text
    assert "pipeline 1   ● spot-2 → ● spot-3" in text
    assert "others       ◉ spot-4 gone in 3 s   ◌ spot-5 gone in 3 s   ○ spot-6   ◔ spot-7" in text
    assert "minute 10 of 60" in text
    assert "revision 7 (notice): 3x2 on 6 workers" in text


def test_the_panel_says_who_is_missing_and_what_it_leaves_out() -> None:
    panel = Panel(started_unix_s=0.0)
    shown = frame(8)
    lost = shown.nodes[0]
    panel.show(replace(shown, nodes=tuple(node for node in shown.nodes if node is not lost)))
    assert "pipeline 0   · lost → ● spot-1" in "\n".join(draw(panel, 100, 30))
    panel.show(frame(200))
    assert "rows more" in "\n".join(draw(panel, 100, 30))


def test_on_a_terminal_the_panel_is_redrawn_in_place() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, height=30, force_terminal=True, color_system=None)
    view = make_view(console, started_unix_s=0.0)
    assert isinstance(view, LiveView)
    view.say("hello")
    view.event(PLANNED)
    view.show(frame())
    view.close()
    # Never more rows than there are, so that the cursor finds its way back.
    assert max(part.count("\n") for part in out.getvalue().split("\x1b[1A")) < 30
    assert "pipeline 0" in out.getvalue()


def test_plain_lines_elsewhere() -> None:
    out = io.StringIO()
    assert isinstance(make_view(Console(file=out), started_unix_s=0.0), PlainView)
    now = [100.0]
    view = PlainView(out, started_unix_s=0.0, clock=lambda: now[0])
    view.event(PLANNED)
    for _ in range(3):
        view.show(frame())
        now[0] += 2.0
    view.show(frame())
    lines = out.getvalue().splitlines()
    assert len(lines) == 3, "progress is said now and then, not at every frame"
    assert "revision 7 (notice): 3x2 on 6 workers" in lines[0]
    assert "8 instances, 4x2, revision 7, step 12, loss 2.5000, 123 samples/s" in lines[1]


def test_nothing_is_said_of_progress_before_there_is_any() -> None:
    out = io.StringIO()
    PlainView(out, started_unix_s=0.0).show(replace(frame(), loss=None))
    assert out.getvalue() == ""


class Pipe(io.StringIO):
    """Its reader goes away after two lines, as ``head -2`` does."""

    flushed = 0

    def flush(self) -> None:
        self.flushed += 1
        if self.flushed > 2:
            raise BrokenPipeError


def test_each_line_is_out_at_once_and_a_reader_may_go_away() -> None:
    out = Pipe()
    view = PlainView(out, started_unix_s=0.0)
    view.say("one")
    assert out.flushed == 1
    for text in ("two", "three", "four", "five"):
        view.say(text)
    assert out.flushed == 3


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
