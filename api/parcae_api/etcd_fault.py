"""Fault: why one try at one server failed, and what may be done about it.

Internal to the etcd client: it never leaves it. Callers see the errors of ``errors.py``.
"""

from __future__ import annotations

from enum import Enum, auto


class FaultKind(Enum):
    """What a failed try means for the next one."""

    UNSENT = auto()
    """There was no connection, or the server was too busy to begin: nothing happened."""
    LOST = auto()
    """The connection broke: the request may have been carried out."""
    SILENT = auto()
    """No answer in time: the request may have been, or may yet be, carried out."""
    UNAUTHENTICATED = auto()
    """The token is no longer valid; nothing happened."""
    AUTH_IS_OFF = auto()
    """The server knows no users."""
    NOT_FOUND = auto()
    """The lease is gone."""
    EXISTS = auto()
    """The lease, user or role is there already."""
    NO_USER = auto()
    """There is no such user or role."""
    WRONG_PASSWORD = auto()
    """The user is another one, or has another password."""
    COMPACTED = auto()
    """The history asked for was dropped."""
    REFUSED = auto()
    """Asking again will not help."""


class Fault(Exception):
    """One try failed.

    Args:
        kind: What it means.
        detail: The server's or the transport's own words.
    """

    def __init__(self, kind: FaultKind, detail: str) -> None:
        super().__init__(f"{kind.name.lower()}: {detail}")
        self.kind = kind
        self.detail = detail

    @property
    def may_have_happened(self) -> bool:
        """Whether a write may have been carried out all the same."""
        return self.kind in (FaultKind.LOST, FaultKind.SILENT)

    @property
    def blames_endpoint(self) -> bool:
        """Whether another endpoint may do better."""
        return self.kind in (FaultKind.UNSENT, FaultKind.LOST, FaultKind.SILENT)


class Stopped(Exception):
    """The background loop that made this call was told to end."""
