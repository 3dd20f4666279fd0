"""The live view: what a person sees while a local run goes on.

On a terminal a panel that is redrawn in place; elsewhere one plain line per event and a line of
progress now and then.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from parcae_api.events import AnyEvent, Failed, InstanceLost, NoticeGiven, Planned, RolledBack
from parcae_api.membership import Notice
from parcae_cli.local.describe import describe

_PLAIN_SECONDS = 5.0
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class NodeView:
    """One instance."""

    name: str
    state: str
    """``booting``, ``starting``, ``standby``, ``training`` or ``leaving``."""
    notice: Notice | None
    cell: str
    """Its place in the grid, empty outside."""


@dataclass(frozen=True)
class Frame:
    """Everything shown at one moment."""

    title: str
    trace_seconds: float | None
    trace_duration_seconds: float | None
    nodes: tuple[NodeView, ...]
    configuration: str
    revision: int
    why: str
    step: int
    loss: float | None
    samples_per_second: float | None


class View(Protocol):
    """Shows a run."""

    def show(self, frame: Frame) -> None:
        """The run as it stands; called several times a second."""
        ...

    def event(self, event: AnyEvent) -> None:
        """Something happened."""
        ...

    def say(self, text: str) -> None:
        """A line of our own."""
        ...

    def close(self) -> None:
        """The run is over."""
        ...


def make_view(console: Console, started_unix_s: float) -> View:
    """A panel on a terminal, plain lines elsewhere."""
    if console.is_terminal:
        return LiveView(console, started_unix_s)
    return PlainView(console.file.write, started_unix_s)


class PlainView:
    """Plain lines."""

    def __init__(self, write: Callable[[str], object], started_unix_s: float) -> None:
        self._write = write
        self._started_unix_s = started_unix_s
        self._last = 0.0

    def show(self, frame: Frame) -> None:
        """See ``View``."""
        now = time.monotonic()
        if now - self._last < _PLAIN_SECONDS or frame.loss is None:
            return
        self._last = now
        speed = f"{frame.samples_per_second:.0f}" if frame.samples_per_second else "-"
        self.say(
            f"{len(frame.nodes)} instances, {frame.configuration or 'paused'}, "
            f"revision {frame.revision}, step {frame.step}, loss {frame.loss:.4f}, "
            f"{speed} samples/s"
        )

    def event(self, event: AnyEvent) -> None:
        """See ``View``."""
        self._line(event.at_unix_s, describe(event))

    def say(self, text: str) -> None:
        """See ``View``."""
        self._line(time.time(), text)

    def close(self) -> None:
        """See ``View``."""

    def _line(self, at_unix_s: float, text: str) -> None:
        self._write(f"{at_unix_s - self._started_unix_s:7.1f}s  {text}\n")


class LiveView:
    """A panel redrawn in place."""

    def __init__(self, console: Console, started_unix_s: float) -> None:
        self._started_unix_s = started_unix_s
        self._events: deque[Text] = deque(maxlen=9)
        self._losses: deque[float] = deque(maxlen=48)
        self._speeds: deque[float] = deque(maxlen=48)
        self._frame: Frame | None = None
        self._live = Live(console=console, refresh_per_second=8, transient=False)
        self._live.start()

    def show(self, frame: Frame) -> None:
        """See ``View``."""
        if frame.loss is not None and (self._frame is None or frame.step != self._frame.step):
            self._losses.append(frame.loss)
            self._speeds.append(frame.samples_per_second or 0.0)
        self._frame = frame
        self._live.update(self._draw(frame))

    def event(self, event: AnyEvent) -> None:
        """See ``View``."""
        self._add(event.at_unix_s, describe(event), _style(event))

    def say(self, text: str) -> None:
        """See ``View``."""
        self._add(time.time(), text, "bold")

    def close(self) -> None:
        """See ``View``."""
        self._live.stop()

    def _add(self, at_unix_s: float, text: str, style: str) -> None:
        stamp = f"{at_unix_s - self._started_unix_s:6.1f}s "
        line = Text.assemble((stamp, "dim"), (text, style), overflow="ellipsis", no_wrap=True)
        self._events.append(line)
        if self._frame is not None:
            self._live.update(self._draw(self._frame))

    def _draw(self, frame: Frame) -> RenderableType:
        return Panel(
            Group(
                self._numbers(frame),
                Text(frame.why, style="magenta", overflow="ellipsis", no_wrap=True),
                Text(),
                _nodes(frame),
                Text(),
                *self._events,
            ),
            title=f"[bold]{frame.title}[/]",
            subtitle=_clock(frame),
            border_style="cyan",
        )

    def _numbers(self, frame: Frame) -> Table:
        table = Table.grid(padding=(0, 3))
        for _ in range(3):
            table.add_column(no_wrap=True)
        loss = f"{frame.loss:.4f}" if frame.loss is not None else "-"
        speed = f"{frame.samples_per_second:.1f}" if frame.samples_per_second else "-"
        table.add_row(
            Text.assemble(("layout ", "dim"), (frame.configuration or "paused", "bold magenta")),
            Text.assemble(("loss ", "dim"), (loss, "bold green")),
            Text(_spark(self._losses), style="green"),
        )
        table.add_row(
            Text.assemble(
                ("revision ", "dim"), str(frame.revision), ("  step ", "dim"), str(frame.step)
            ),
            Text.assemble(("samples/s ", "dim"), (speed, "bold yellow")),
            Text(_spark(self._speeds), style="yellow"),
        )
        return table


_MARKS = {
    "booting": ("○", "dim"),
    "starting": ("◔", "blue"),
    "standby": ("◑", "cyan"),
    "training": ("●", "green"),
    "leaving": ("◉", "red"),
}


def _nodes(frame: Frame) -> RenderableType:
    cells = Table.grid(padding=(0, 2))
    now = time.time()
    row: list[Text] = []
    for node in frame.nodes:
        mark, style = _MARKS[node.state]
        text = Text.assemble((f"{mark} ", style), node.name)
        if node.cell:
            text.append(f" {node.cell}", style="dim")
        if node.notice is not None:
            left = max(0.0, node.notice.deadline_unix_s - now)
            text.append(f" gone in {left:.0f}s", style="bold red")
        row.append(text)
        if len(row) == 3:
            cells.add_row(*row)
            row = []
    if row:
        cells.add_row(*row)
    return cells


def _clock(frame: Frame) -> str:
    if frame.trace_seconds is None or frame.trace_duration_seconds is None:
        return ""
    done, total = frame.trace_seconds / 60, frame.trace_duration_seconds / 60
    return f"minute {min(done, total):.0f} of {total:.0f} of the recording"


def _spark(values: deque[float]) -> str:
    if not values:
        return ""
    low, high = min(values), max(values)
    spread = (high - low) or 1.0
    return "".join(_BARS[int((v - low) / spread * (len(_BARS) - 1))] for v in values)


def _style(event: AnyEvent) -> str:
    match event:
        case NoticeGiven():
            return "yellow"
        case InstanceLost(noticed=False) | Failed() | RolledBack():
            return "red"
        case Planned():
            return "magenta"
        case _:
            return ""
