"""The panel of the live view: fits whatever terminal it is drawn on.

::

    ╭────────────────────────────────── parcae local: gpt ──────────────────────────────────╮
    │ Training   2×3   revision 7   step 412   loss 2.8625   57 samples/s                   │
    │ 2x3 on 6 workers: 52 samples/s predicted, next best 3x2 with 49                       │
    │                                                                                       │
    │ pipeline 0   ● spot-1 → ● spot-10 → ● spot-14                                         │
    │ pipeline 1   ● spot-6 → ● spot-21 → ◉ spot-23 gone in 2 s                             │
    │ others       ◔ spot-37   ○ spot-42                                                    │
    │                                                                                       │
    │ loss ▇▆▅▅▄▄▃▃▂▂▁▁                       samples/s ▅▅▆▆▇▇▂▆▇▇                          │
    │                                                                                       │
    │   27.4s revision 9 trains from step 19: copied stages (4.4 MB), pause 132 ms          │
    ╰──────────────────────── recording ━━━━━━━━━━━━──────── minute 36 of 60 ───────────────╯

The events take the room that is left; where there is little, the layout is cut short. It is always
as high as it can be, so that nothing jumps.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.panel import Panel as Border
from rich.table import Table
from rich.text import Text

from parcae_api.events import AnyEvent, Failed, InstanceLost, NoticeGiven, Planned, RolledBack
from parcae_cli.local.describe import describe
from parcae_cli.local.frame import Frame, NodeView

_BARS = "▁▂▃▄▅▆▇█"
_KEPT_VALUES = 400
_MOST_EVENTS = 40
_LEAST_EVENTS = 4
_MOST_ROWS = 29
_MARKS = {
    "booting": ("○", "dim"),
    "starting": ("◔", "blue"),
    "standby": ("◑", "cyan"),
    "training": ("●", "green"),
    "leaving": ("◉", "red"),
    "gone": ("◌", "dim"),
}
_PHASES = {"Training": "bold green", "Forming": "bold yellow", "Paused": "bold red"}


class Panel:
    """Draws the newest frame, what led there, and the newest events. Thread-safe."""

    def __init__(self, started_unix_s: float) -> None:
        self._started_unix_s = started_unix_s
        self._events: deque[Text] = deque(maxlen=_MOST_EVENTS)
        self._losses: deque[float] = deque(maxlen=_KEPT_VALUES)
        self._speeds: deque[float] = deque(maxlen=_KEPT_VALUES)
        self._frame: Frame | None = None
        self._lock = threading.Lock()

    def show(self, frame: Frame) -> None:
        """Take the newest frame."""
        with self._lock:
            if frame.loss is not None and (self._frame is None or frame.step != self._frame.step):
                self._losses.append(frame.loss)
                self._speeds.append(frame.samples_per_second or 0.0)
            self._frame = frame

    def add_event(self, event: AnyEvent) -> None:
        """Take an event."""
        self.add_line(event.at_unix_s, describe(event), _style(event))

    def add_line(self, at_unix_s: float, text: str, style: str) -> None:
        """Take a line for the list of events."""
        stamp = f"{at_unix_s - self._started_unix_s:6.1f}s "
        line = Text.assemble((stamp, "dim"), (text, style), overflow="ellipsis", no_wrap=True)
        with self._lock:
            self._events.append(line)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # One row less than there are: the cursor stands below the panel.
        height = min(_MOST_ROWS, max(8, (options.height or console.height) - 1))
        with self._lock:
            drawn = self._draw(width=options.max_width, height=height)
        yield drawn

    def _draw(self, *, width: int, height: int) -> Border:
        room = height - 2  # the border
        frame, rows = self._frame, list[Text]()
        if frame is not None:
            rows += [_numbers(frame), _one_line(frame.why, "magenta"), Text()]
            fixed = len(rows) + 3  # a rule of blanks, the curves, another
            rows += _layout(frame, width, most=max(1, room - fixed - _LEAST_EVENTS))
            rows += [Text(), self._curves(width), Text()]
        left = max(0, room - len(rows))
        rows += list(self._events)[-left:] if left else []
        rows += [Text()] * (room - len(rows))  # always as high: nothing jumps
        body = Table.grid(expand=True)
        body.add_column(no_wrap=True, overflow="ellipsis")
        for row in rows[:room]:
            body.add_row(row)
        return Border(
            body,
            box=box.ROUNDED,
            title=f"[bold]{frame.title}[/]" if frame else None,
            subtitle=_clock(frame) if frame else None,
            border_style="cyan",
        )

    def _curves(self, width: int) -> Text:
        each = max(8, (width - 34) // 2)
        loss, speed = _spark(self._losses, each), _spark(self._speeds, each)
        return Text.assemble(
            ("loss ", "dim"),
            (loss.ljust(each), "green"),
            ("   samples/s ", "dim"),
            (speed, "yellow"),
        )


def _numbers(frame: Frame) -> Text:
    layout = frame.configuration.replace("x", "×") or "no layout"
    loss = f"{frame.loss:.4f}" if frame.loss is not None else "-"
    speed = f"{frame.samples_per_second:.0f}" if frame.samples_per_second else "-"
    return Text.assemble(
        (frame.phase, _PHASES.get(frame.phase, "bold")),
        ("   ", ""),
        (layout, "bold magenta"),
        ("   revision ", "dim"),
        str(frame.revision),
        ("   step ", "dim"),
        str(frame.step),
        ("   loss ", "dim"),
        (loss, "bold green"),
        ("   samples/s ", "dim"),
        (speed, "bold yellow"),
        overflow="ellipsis",
        no_wrap=True,
    )


def _layout(frame: Frame, width: int, most: int) -> list[Text]:
    """A row per pipeline, its stages in order; then whoever has no place."""
    pipelines: dict[int, dict[int, NodeView]] = {}
    for node in frame.nodes:
        if node.cell is not None:
            pipelines.setdefault(node.cell.replica, {})[node.cell.stage] = node
    lines = []
    for replica in sorted(pipelines):
        stages = pipelines[replica]
        nodes = [stages.get(stage) for stage in range(max(stages) + 1)]
        lines.append(_row(f"pipeline {replica}", nodes, " → "))
    others = [node for node in frame.nodes if node.cell is None]
    lines += _others(others, width)
    if len(lines) > most:
        hidden = len(lines) - most + 1
        lines = [*lines[: most - 1], Text(f"… and {hidden} rows more", style="dim")]
    return lines


def _row(name: str, nodes: Sequence[NodeView | None], between: str) -> Text:
    text = Text(f"{name:<13}", style="dim", overflow="ellipsis", no_wrap=True)
    for index, node in enumerate(nodes):
        text.append(between if index else "", style="dim")
        text.append_text(_node(node))
    return text


def _others(nodes: Sequence[NodeView], width: int) -> list[Text]:
    """As many to a row as fit."""
    rows: list[list[NodeView]] = [[]]
    used = 0
    for node in nodes:
        length = _node(node).cell_len + 3
        if rows[-1] and used + length > width - 18:
            rows.append([])
            used = 0
        rows[-1].append(node)
        used += length
    return [_row("" if index else "others", row, "   ") for index, row in enumerate(rows) if row]


def _node(node: NodeView | None) -> Text:
    if node is None:  # its agent is not on the board: lost a moment ago
        return Text("· lost", style="red")
    mark, style = _MARKS[node.state]
    text = Text.assemble((f"{mark} ", style), (node.name, "dim" if node.state == "gone" else ""))
    if node.notice is not None:
        left_s = max(0.0, node.notice.deadline_unix_s - time.time())
        text.append(f" gone in {left_s:.0f} s", style="bold red")
    return text


def _clock(frame: Frame) -> Text | None:
    if frame.trace_seconds is None or frame.trace_duration_seconds is None:
        return None
    total_s = frame.trace_duration_seconds
    done_s = min(frame.trace_seconds, total_s)
    done = round(24 * done_s / total_s)
    return Text.assemble(
        (" recording ", "dim"),
        ("━" * done, "cyan"),
        ("─" * (24 - done), "dim"),
        (f" minute {done_s / 60:.0f} of {total_s / 60:.0f} ", "dim"),
    )


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, overflow="ellipsis", no_wrap=True)


def _spark(values: Sequence[float], width: int) -> str:
    """The newest values, as many as there is room for."""
    shown = list(values)[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    spread = (high - low) or 1.0
    return "".join(_BARS[int((v - low) / spread * (len(_BARS) - 1))] for v in shown)


def _style(event: AnyEvent) -> str:
    match event:
        case NoticeGiven():
            return "yellow"
        case InstanceLost(noticed=False) | Failed():
            return "red"
        case RolledBack():
            return "red" if event.to_step < event.from_step else "yellow"
        case Planned():
            return "magenta"
        case _:
            return ""
