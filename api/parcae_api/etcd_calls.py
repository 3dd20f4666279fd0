"""The calls of the etcd v3 protocol that we make, typed: what is sent, and how the answer reads.

Only here and in ``etcd_auth_calls`` ``etcd3`` is imported, for its generated messages and stubs,
which are untyped: whatever is ``Any`` stays in these two and in ``etcd_wire``. Its client on top of
them is not used: that one blocks a failed endpoint for minutes, and its watch dies without a word
(measured).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from etcd3 import etcdrpc

from parcae_api.etcd_types import Change, Snapshot, Versioned

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Call(Generic[R]):
    """One request, ready to be sent any number of times."""

    stub: Any
    method: str
    request: Any
    read: Callable[[Any], R]
    streams: bool = False
    """The protocol wants a stream although one request has one answer."""


@dataclass(frozen=True, slots=True)
class Swapped:
    """How a compare-and-swap ended."""

    succeeded: bool
    revision: int
    """Of the store afterwards: the new value's own, if it succeeded."""


@dataclass(frozen=True, slots=True)
class WatchReply:
    """One message of a watch."""

    changes: tuple[Change, ...]
    """In order; all changes of a revision come in one message."""
    compact_revision: int
    """Above 0: the history before this revision is gone, and the watch has ended."""
    canceled: bool
    reason: str
    """Why the server ended the watch."""


def get(key: str, revision: int = 0) -> Call[Versioned | None]:
    """Read a key, as of a past revision where one is given."""
    request = etcdrpc.RangeRequest(key=_encode(key), revision=revision)
    return Call(etcdrpc.KVStub, "Range", request, _read_one)


def list_(prefix: str) -> Call[Snapshot]:
    """Read all keys of a prefix."""
    request = etcdrpc.RangeRequest(key=_encode(prefix), range_end=prefix_end(prefix))
    return Call(etcdrpc.KVStub, "Range", request, _read_all)


def current_revision(prefix: str) -> Call[int]:
    """The store's revision, asked in a way that needs the right to read ``prefix`` only."""
    request = etcdrpc.RangeRequest(
        key=_encode(prefix), range_end=prefix_end(prefix), count_only=True
    )
    return Call(etcdrpc.KVStub, "Range", request, _read_revision)


def put(key: str, value: bytes, lease_id: int) -> Call[int]:
    """Write a key. Answers the new revision."""
    return Call(etcdrpc.KVStub, "Put", _put_request(key, value, lease_id), _read_revision)


def delete(start: str, end: bytes | None) -> Call[int]:
    """Delete the key ``start``, or all from it up to ``end``. Answers how many there were."""
    request = etcdrpc.DeleteRangeRequest(key=_encode(start), range_end=end or b"")
    return Call(etcdrpc.KVStub, "DeleteRange", request, lambda reply: int(reply.deleted))


def swap(key: str, expected_mod_revision: int, value: bytes, lease_id: int) -> Call[Swapped]:
    """Write a key if its last write is the expected one (0: if it does not exist)."""
    compare = etcdrpc.Compare(
        key=_encode(key),
        target=etcdrpc.Compare.MOD,
        result=etcdrpc.Compare.EQUAL,
        mod_revision=expected_mod_revision,
    )
    write = etcdrpc.RequestOp(request_put=_put_request(key, value, lease_id))
    request = etcdrpc.TxnRequest(compare=[compare], success=[write])
    return Call(
        etcdrpc.KVStub,
        "Txn",
        request,
        lambda reply: Swapped(bool(reply.succeeded), int(reply.header.revision)),
    )


def compact(revision: int) -> Call[None]:
    """Drop the history before a revision."""
    request = etcdrpc.CompactionRequest(revision=revision, physical=True)
    return Call(etcdrpc.KVStub, "Compact", request, lambda _: None)


def grant(lease_id: int, ttl_s: int) -> Call[float]:
    """Make a lease. Answers the seconds it was granted."""
    request = etcdrpc.LeaseGrantRequest(ID=lease_id, TTL=ttl_s)
    return Call(etcdrpc.LeaseStub, "LeaseGrant", request, lambda reply: float(reply.TTL))


def keep_alive(lease_id: int) -> Call[float]:
    """Renew a lease. Answers the seconds it now has, 0 or less if it is gone."""
    request = etcdrpc.LeaseKeepAliveRequest(ID=lease_id)
    return Call(
        etcdrpc.LeaseStub,
        "LeaseKeepAlive",
        request,
        lambda reply: float(reply.TTL),
        streams=True,
    )


def revoke(lease_id: int) -> Call[None]:
    """End a lease and delete its keys."""
    request = etcdrpc.LeaseRevokeRequest(ID=lease_id)
    return Call(etcdrpc.LeaseStub, "LeaseRevoke", request, lambda _: None)


def authenticate(user: str, password: str) -> Call[str]:
    """Log in. Answers the token."""
    request = etcdrpc.AuthenticateRequest(name=user, password=password)
    return Call(etcdrpc.AuthStub, "Authenticate", request, lambda reply: str(reply.token))


def watch(prefix: str, start_revision: int) -> Call[WatchReply]:
    """Follow a prefix from a revision on; a stream of answers."""
    create = etcdrpc.WatchCreateRequest(
        key=_encode(prefix), range_end=prefix_end(prefix), start_revision=start_revision
    )
    request = etcdrpc.WatchRequest(create_request=create)
    return Call(etcdrpc.WatchStub, "Watch", request, _read_watch, streams=True)


def sign_of_life() -> Any:
    """The message on a watch's stream that any living server answers (etcd 3.4 and newer)."""
    return etcdrpc.WatchRequest(progress_request=etcdrpc.WatchProgressRequest())


def prefix_end(prefix: str) -> bytes:
    """The first key behind all that start with ``prefix``."""
    raw = _encode(prefix).rstrip(b"\xff")
    return raw[:-1] + bytes([raw[-1] + 1]) if raw else b"\x00"


def _put_request(key: str, value: bytes, lease_id: int) -> Any:
    return etcdrpc.PutRequest(key=_encode(key), value=value, lease=lease_id)


def _read_revision(reply: Any) -> int:
    return int(reply.header.revision)


def _read_one(reply: Any) -> Versioned | None:
    return _versioned(reply.kvs[0]) if reply.kvs else None


def _read_all(reply: Any) -> Snapshot:
    return Snapshot(
        items={_decode(kv.key): _versioned(kv) for kv in reply.kvs},
        revision=int(reply.header.revision),
    )


def _read_watch(reply: Any) -> WatchReply:
    return WatchReply(
        changes=tuple(_change(event) for event in reply.events),
        compact_revision=int(reply.compact_revision),
        canceled=bool(reply.canceled),
        reason=str(reply.cancel_reason),
    )


def _change(event: Any) -> Change:
    written = event.type == event.PUT
    return Change(
        key=_decode(event.kv.key),
        item=_versioned(event.kv) if written else None,
        revision=int(event.kv.mod_revision),
    )


def _versioned(kv: Any) -> Versioned:
    return Versioned(bytes(kv.value), int(kv.mod_revision), int(kv.lease), int(kv.create_revision))


def _encode(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")


def _decode(key: bytes) -> str:
    return key.decode("utf-8", "surrogateescape")
