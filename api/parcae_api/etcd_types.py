"""What the etcd client takes and gives: values with their revisions, changes, credentials."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value and the store's revision that last wrote it."""

    value: bytes
    mod_revision: int
    lease_id: int = 0
    """The lease it lives by; 0 when it stays."""
    create_revision: int = field(default=0, compare=False)
    """The store's revision by which the key came to be; later writes leave it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All keys of a prefix as of one revision."""

    items: dict[str, Versioned]
    revision: int


@dataclass(frozen=True, slots=True)
class Change:
    """A key was written, or deleted (by anyone, or with its lease)."""

    key: str
    item: Versioned | None
    """What was written; None: the key was deleted."""
    revision: int
    """Of the write or deletion. For a deletion found by reading all again: of that reading."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Everything under a prefix was read anew: at the start of a watch, or after a gap.

    A gap is a time of which the server no longer knows the single changes. ``snapshot`` replaces
    all that was delivered before; ``changes`` lead there from it, deletions included.
    """

    snapshot: Snapshot
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificate files in PEM. Without ``ca``, the system's roots; ``cert`` and ``key`` if any."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """A user of etcd."""

    user: str
    password: str = field(repr=False)
