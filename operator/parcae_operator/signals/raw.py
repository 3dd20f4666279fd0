"""Reading objects of the API server without trust: what cannot be read is as if it were absent.

Nothing here raises. A field of a wrong type reads as empty, a nonsense time as None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Raw = Mapping[str, Any]
"""An object as from the API server: camelCase keys, nested mappings and lists."""

_EMPTY: Raw = {}
_LATEST_UNIX_S = 1e11
"""A time beyond this is nonsense, not a time."""


def child(raw: object, *path: str) -> Raw:
    """The mapping at a path, or an empty one."""
    for key in path:
        raw = raw.get(key) if isinstance(raw, Mapping) else None
    return raw if isinstance(raw, Mapping) else _EMPTY


def items(raw: object, *path: str) -> Iterator[Raw]:
    """The mappings in the list at a path; whatever else is in it is left out."""
    *parents, last = path
    found = child(raw, *parents).get(last)
    if isinstance(found, list | tuple):
        yield from (item for item in found if isinstance(item, Mapping))


def text(raw: object, *path: str) -> str:
    """The string at a path, or an empty one. Numbers and booleans read as JSON prints them."""
    *parents, last = path
    found = child(raw, *parents).get(last)
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, str | int | float) else ""


def number(raw: object, *path: str) -> int | None:
    """The whole number at a path, also as decimal text, or None."""
    try:
        return int(text(raw, *path))
    except ValueError:
        return None


def flag(raw: object, *path: str) -> bool:
    """Whether the value at a path is true."""
    return text(raw, *path).lower() == "true"


def time_s(raw: object, *path: str) -> float | None:
    """The RFC 3339 time at a path in seconds since 1970, or None."""
    *parents, last = path
    found = child(raw, *parents).get(last)
    if isinstance(found, datetime):
        moment = found
    elif isinstance(found, str):
        try:
            moment = datetime.fromisoformat(found)
        except ValueError:
            return None
    else:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def unix_s(value: str) -> float | None:
    """Seconds since 1970 written as a decimal number, or None."""
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 < seconds < _LATEST_UNIX_S else None
