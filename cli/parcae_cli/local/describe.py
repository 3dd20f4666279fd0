"""Events as sentences for people."""

from __future__ import annotations

from parcae_api.events import (
    AnyEvent,
    Condition,
    Failed,
    InstanceJoined,
    InstanceLost,
    Migration,
    MigrationKind,
    NoticeGiven,
    Planned,
    RolledBack,
)

_KINDS = {
    MigrationKind.INTRA_STAGE: "regrouped, no state moved",
    MigrationKind.INTER_STAGE: "copied stages",
    MigrationKind.PIPELINE: "re-partitioned",
}


def describe(event: AnyEvent) -> str:
    """One line, without a time."""
    match event:
        case NoticeGiven():
            left = event.deadline_unix_s - event.at_unix_s
            return f"{event.node} got notice: gone in {left:.1f} s"
        case InstanceLost(noticed=True):
            return f"{event.node} is gone, as announced"
        case InstanceLost():
            return f"{event.node} is gone without notice"
        case InstanceJoined():
            return f"{event.node} is ready"
        case Planned():
            return f"revision {event.revision} ({event.reason}): {event.why}"
        case Migration():
            return _migration(event)
        case RolledBack() if event.from_step == event.to_step:
            return (
                f"a layer had no holder left: read from the checkpoint of step {event.to_step}, "
                "no step lost"
            )
        case RolledBack():
            return (
                f"a layer had no holder left: back from step {event.from_step} to the "
                f"checkpoint of step {event.to_step}"
            )
        case Failed():
            return event.message
        case Condition():
            return event.message


def size(nbytes: float) -> str:
    """Bytes with a unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


def _migration(event: Migration) -> str:
    text = f"revision {event.revision} trains from step {event.resumed_step}: "
    text += _KINDS[event.kind]
    if event.bytes_moved:
        text += f" ({size(event.bytes_moved)})"
    text += f", pause {event.pause_seconds * 1000:.0f} ms"
    if event.steps_replayed:
        text += f", {event.steps_replayed} step{'s'[: event.steps_replayed > 1]} replayed"
    return text
