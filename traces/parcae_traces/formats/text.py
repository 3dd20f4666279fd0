"""A file's lines with their numbers, and complaints that name them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from parcae_api.errors import InputError
from parcae_traces.model import LATEST_S, MOST_INSTANCES

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line that is not blank."""

    number: int
    """Counted from 1, blank lines included."""
    content: str
    """Without the white space around it."""


@dataclass(frozen=True, slots=True)
class Text:
    """A text file that holds at least one line."""

    path: Path
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        """A trace's name made of the file's."""
        cleaned = re.sub(r"[^A-Za-z0-9._-]+", "-", self.path.stem).lstrip("._-")
        return cleaned or "trace"

    def source(self, format_name: str) -> str:
        """What a trace read from here says of its origin."""
        return f"read from {' '.join(self.path.name.split())} ({format_name})"

    def fail(self, line: int, reason: str) -> NoReturn:
        """Complain about a line.

        Raises:
            InputError: always.
        """
        raise InputError(f"{self.path}, line {line}: {reason}")

    @contextmanager
    def at(self, line: int) -> Iterator[None]:
        """Whatever value is refused inside, the complaint names this line."""
        try:
            yield
        except ValueError as error:
            self.fail(line, str(error))


def read_text(path: Path) -> Text:
    """Read a file.

    Raises:
        InputError: it is missing, unreadable, no text, or holds nothing.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: is no UTF-8 text (byte {error.start}); give a trace as text"
        ) from error
    rows = tuple(
        Row(index, stripped)
        for index, line in enumerate(content.split("\n"), start=1)
        if (stripped := line.strip())
    )
    if not rows:
        raise InputError(f"{path}: is empty; give a file that holds a trace")
    return Text(path, rows)


def number(text: str, what: str) -> float:
    """Read a number from 0 to ``LATEST_S``.

    Raises:
        ValueError: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LATEST_S:
        raise ValueError(f"{text.strip()!r} is no {what}; give a number, 0 or more")
    return value


def whole(text: str, what: str) -> int:
    """Read a whole number from 0 to ``MOST_INSTANCES``.

    Raises:
        ValueError: it is none.
    """
    if not re.fullmatch(r"\d{1,5}", text.strip(), flags=re.ASCII):
        raise ValueError(
            f"{text.strip()!r} is no {what}; give a whole number from 0 to {MOST_INSTANCES}"
        )
    return int(text)


def end_of_minute(last_s: float) -> float:
    """Where a recording that does not say its end is taken to end: with its last row's minute."""
    return (math.floor(last_s / MINUTE_S) + 1) * MINUTE_S
