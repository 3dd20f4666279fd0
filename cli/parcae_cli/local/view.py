"""The live view: what a person sees while a local run goes on.

On a terminal a panel that is redrawn in place (``panel``); elsewhere one plain line per event and
a line of progress now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, Protocol

from rich.console import Console
from rich.live import Live

from parcae_api.events import AnyEvent
from parcae_cli.local.describe import describe
from parcae_cli.local.frame import Frame
from parcae_cli.local.panel import Panel

_PLAIN_SECONDS = 5.0


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
    return PlainView(console.file, started_unix_s)


class PlainView:
    """Plain lines, each out at once."""

    def __init__(
        self,
        file: IO[str],
        started_unix_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._started_unix_s = started_unix_s
        self._clock = clock
        self._shown_s: float | None = None
        self._is_broken = False

    def show(self, frame: Frame) -> None:
        """See ``View``."""
        now_s = self._clock()
        if frame.loss is None or (
            self._shown_s is not None and now_s - self._shown_s < _PLAIN_SECONDS
        ):
            return
        self._shown_s = now_s
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
        """Nobody reads any more (``| head``): the run goes on without, for its records."""
        if self._is_broken:
            return
        try:
            self._file.write(f"{at_unix_s - self._started_unix_s:7.1f}s  {text}\n")
            self._file.flush()
        except OSError:
            self._is_broken = True


class LiveView:
    """A panel redrawn in place."""

    def __init__(self, console: Console, started_unix_s: float) -> None:
        self.panel = Panel(started_unix_s)
        self._live = Live(
            self.panel, console=console, refresh_per_second=8, vertical_overflow="crop"
        )
        self._live.start()

    def show(self, frame: Frame) -> None:
        """See ``View``."""
        self.panel.show(frame)

    def event(self, event: AnyEvent) -> None:
        """See ``View``."""
        self.panel.add_event(event)

    def say(self, text: str) -> None:
        """See ``View``."""
        self.panel.add_line(time.time(), text, "bold")

    def close(self) -> None:
        """See ``View``."""
        self._live.stop()
