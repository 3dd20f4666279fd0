"""What lines of a log are about: a job, a revision, a worker. Set once, it is in all that follow.

Revisions are the ids by which operator, planner and agents tell of the same change: from program to
program they go in W3C's ``baggage`` header, as traces do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from urllib.parse import quote, unquote

HEADER = "baggage"
_FIELDS = ("namespace", "job", "revision")
"""Those that go from program to program."""
_PREFIX = "parcae."
_LONGEST = 2048
"""Characters of a header that are looked at: it comes from outside."""

Fields = Mapping[str, object]

_always: dict[str, object] = {}
_here: ContextVar[Fields] = ContextVar("parcae_log_context", default=MappingProxyType({}))


def always(**fields: object) -> None:
    """What all lines of this process are about from now on."""
    _always.update(fields)


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """What the lines of this block are about, beside what is around it.

    It holds for this thread or task. None says that nothing is known of that field.
    """
    token = _here.set({**_here.get(), **fields})
    try:
        yield
    finally:
        _here.reset(token)


def all_fields() -> Fields:
    """What a line written here and now is about."""
    return _known({**_always, **_here.get()})


def fields_here() -> Fields:
    """The same without what all lines of this process are about."""
    return _known(_here.get())


def to_header() -> str:
    """Job and revision for another program; empty where none is known."""
    fields = all_fields()
    parts = [f"{_PREFIX}{name}={quote(str(fields[name]))}" for name in _FIELDS if name in fields]
    return ",".join(parts)


def from_header(value: str | None) -> dict[str, object]:
    """Job and revision from another program; what is not ours or has no sense is left out."""
    found: dict[str, object] = {}
    for part in (value or "")[:_LONGEST].split(","):
        key, _, given = part.partition(";")[0].strip().partition("=")
        name = key.strip().removeprefix(_PREFIX)
        text = unquote(given.strip())
        if not key.startswith(_PREFIX) or name not in _FIELDS or not text.isprintable():
            continue
        if name != "revision":
            found[name] = text[:253]
        elif text.isascii() and text.isdecimal() and len(text) < 16:
            found[name] = int(text)
    return {name: value for name, value in found.items() if value != ""}


def _known(fields: Fields) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}
