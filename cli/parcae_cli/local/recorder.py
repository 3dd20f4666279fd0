"""The records of a run: events as they happen, and how many instances there were when.

``events.jsonl`` is written line by line, so that a run that is killed leaves what it knew.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from parcae_api.events import AnyEvent


@dataclass(frozen=True)
class Count:
    """Instances from a moment on."""

    at_s: float
    """Seconds since the run's start."""
    instances: int


@dataclass
class Recorder:
    """Thread-safe."""

    path: Path
    started_unix_s: float = field(default_factory=time.time)
    events: list[AnyEvent] = field(default_factory=list)
    counts: list[Count] = field(default_factory=list)
    playing_since_s: float = 0.0
    """When the recording began to play, in seconds since the start: before, programs loaded."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._file = self.path.open("a", encoding="utf-8")
        self._failed = False

    def report(self, event: AnyEvent) -> None:
        """Record an event."""
        with self._lock:
            self.events.append(event)
            at = datetime.fromtimestamp(event.at_unix_s, UTC).isoformat(timespec="milliseconds")
            at_s = round(event.at_unix_s - self.started_unix_s, 3)
            line: dict[str, Any] = {"at_s": at_s, "time": at}
            line |= event.model_dump(mode="json", exclude={"at_unix_s"})
            self._write(json.dumps(line))

    def count(self, instances: int) -> None:
        """Record how many instances there are now."""
        with self._lock:
            if not self.counts or self.counts[-1].instances != instances:
                self.counts.append(Count(time.time() - self.started_unix_s, instances))

    def playing(self) -> None:
        """The recording begins to play now."""
        self.playing_since_s = time.time() - self.started_unix_s

    def close(self) -> None:
        """Close the file."""
        with self._lock, contextlib.suppress(OSError):
            self._file.close()

    def _write(self, line: str) -> None:
        """A full disk must not end training; the summary will say what is missing."""
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except (OSError, ValueError):
            self._failed = True

    @property
    def is_complete(self) -> bool:
        """Whether everything reached the file."""
        return not self._failed
