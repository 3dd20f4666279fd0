"""What a board held at one moment, and what changed on it, in models instead of bytes.

A value that does not parse was written by another version of ours. Among many it is left out, with
a warning, so that one of them cannot stop a job.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar, cast

from parcae_api.board_keys import KeyKind, Slot, find_slot
from parcae_api.errors import BoardError
from parcae_api.etcd_types import Change, Reset, Snapshot
from parcae_api.model import Contract

_log = logging.getLogger(__name__)

M = TypeVar("M", bound=Contract)


@dataclass(frozen=True, slots=True)
class BoardChange:
    """One key of a job's board was written or deleted."""

    kind: KeyKind
    name: str
    """What tells keys of this kind apart; empty where there is only one."""
    model: Contract | None
    """None: it was deleted."""
    revision: int
    """Of the store, by this change."""
    created_revision: int = 0
    """Of the store, when the key came to be; 0 where it was deleted."""


@dataclass(frozen=True, slots=True)
class BoardSnapshot:
    """All readable keys of a job's board as of one revision of the store."""

    models: dict[KeyKind, dict[str, Contract]]
    revision: int

    def all(self, slot: Slot[M]) -> dict[str, M]:
        """The models of one kind, by name, sorted by it."""
        return cast("dict[str, M]", self.models.get(slot.kind, {}))

    def one(self, slot: Slot[M]) -> M | None:
        """The model of a kind that has no names."""
        return self.all(slot).get("")


@dataclass(frozen=True, slots=True)
class BoardReset:
    """The board was read anew; ``changes`` lead there from what a watch delivered before."""

    snapshot: BoardSnapshot
    changes: tuple[BoardChange, ...]


def read_snapshot(prefix: str, snapshot: Snapshot) -> BoardSnapshot:
    """All readable keys of a job whose keys start with ``prefix``."""
    models: dict[KeyKind, dict[str, Contract]] = {}
    for key, item in snapshot.items.items():
        change = read_change(prefix, Change(key, item, item.mod_revision))
        if change is not None and change.model is not None:
            models.setdefault(change.kind, {})[change.name] = change.model
    return BoardSnapshot(models, snapshot.revision)


def read_reset(prefix: str, reset: Reset) -> BoardReset:
    """A reset in models."""
    snapshot = read_snapshot(prefix, reset.snapshot)
    changes = (
        read_change(prefix, change) if change.item is None else _find(prefix, change, snapshot)
        for change in reset.changes
    )
    return BoardReset(snapshot, tuple(change for change in changes if change is not None))


def _find(prefix: str, change: Change, snapshot: BoardSnapshot) -> BoardChange | None:
    found = find_slot(change.key.removeprefix(prefix))
    if found is None:
        return None
    slot, name = found
    model = snapshot.all(slot).get(name)
    if model is None or change.item is None:
        return None
    return BoardChange(slot.kind, name, model, change.revision, change.item.create_revision)


def read_change(prefix: str, change: Change) -> BoardChange | None:
    """A change in models; None where it is no key of ours, or does not parse (logged)."""
    found = find_slot(change.key.removeprefix(prefix))
    if found is None:
        _log.debug("%s: no key of this version", change.key)
        return None
    slot, name = found
    if change.item is None:
        return BoardChange(slot.kind, name, None, change.revision)
    try:
        model = slot.read(change.key, change.item.value)
    except BoardError as error:
        _log.warning("left out: %s", error)
        return None
    return BoardChange(slot.kind, name, model, change.revision, change.item.create_revision)
