"""What happened to a job, as a Kubernetes Event on it. Pure."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import Any

from parcae_api.events import (
    AnyEvent,
    Failed,
    InstanceJoined,
    InstanceLost,
    Migration,
    NoticeGiven,
    Planned,
    RolledBack,
)
from parcae_api.job import API_VERSION, KIND, ParcaeJob
from parcae_api.job_status import Condition

Object = dict[str, Any]
_LONGEST_NOTE = 1024
"""Bytes that the API server takes."""
_CONTROLLER = "parcae.dev/operator"


def tell(job: ParcaeJob, event: AnyEvent, reporter: str) -> Object | None:
    """The Event of something that happened; None where people need not hear of it.

    Args:
        job: Whose.
        event: What.
        reporter: This operator's name.
    """
    match event:
        case Planned():
            at = "" if event.configuration == "paused" else f" {event.configuration}"
            note = f"revision {event.revision}{at} ({event.reason}): {event.why}"
            return make_event(job, "Planned", note, reporter)
        case Migration():
            note = (
                f"revision {event.revision} formed at step {event.resumed_step}: "
                f"{event.kind}, {event.bytes_moved} bytes moved, paused {event.pause_seconds:.2f} s"
            )
            return make_event(job, "Migrated", note, reporter)
        case NoticeGiven():
            note = f"the instance of {event.incarnation} on {event.node} goes away: {event.source}"
            return make_event(job, "InstanceNoticed", note, reporter)
        case InstanceLost():
            how = "after a notice" if event.noticed else "without notice"
            note = f"the instance of {event.incarnation} on {event.node} is lost {how}"
            return make_event(job, "InstanceLost", note, reporter, warning=not event.noticed)
        case InstanceJoined():
            note = f"{event.incarnation} on {event.node} is ready to train"
            return make_event(job, "InstanceJoined", note, reporter)
        case RolledBack():
            note = (
                f"revision {event.revision}: a layer had no holder left: back from step "
                f"{event.from_step} to {event.to_step}"
            )
            return make_event(job, "RolledBack", note, reporter, warning=True)
        case Failed():
            return make_event(job, "UserCodeFailed", event.message, reporter, warning=True)
        case _:
            return None


def tell_condition(job: ParcaeJob, condition: Condition, reporter: str) -> Object:
    """The Event of a condition that has flipped."""
    bad = condition.type in ("Degraded", "Failed") and condition.status == "True"
    note = condition.message or condition.reason
    return make_event(job, condition.reason, note, reporter, warning=bad)


def make_event(
    job: ParcaeJob, reason: str, note: str, reporter: str, *, warning: bool = False
) -> Object:
    """An ``events.k8s.io/v1`` Event about a job."""
    metadata = job.metadata
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata.name}.{secrets.token_hex(8)}",
            "namespace": metadata.namespace,
        },
        "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": _CONTROLLER,
        "reportingInstance": reporter[:128],
        "action": reason,
        "reason": reason,
        "type": "Warning" if warning else "Normal",
        "note": note.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
        "regarding": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
        },
    }
