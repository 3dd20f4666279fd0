"""Reading Kubernetes Events about nodes. They get lost and come late: they only ever raise."""

from __future__ import annotations

from parcae_operator.signals.event_tables import EVENTS
from parcae_operator.signals.model import NodeReading, Place, Severity, Signal
from parcae_operator.signals.node import holds
from parcae_operator.signals.raw import Raw, child, text, time_s
from parcae_operator.signals.rules import EventRule
from parcae_operator.signals.tables import NOTICE_S

EVENT_STALE_S = 600.0
"""An event so long after its deadline about a node that still stands came to nothing."""
HINT_TTL_S = 3600.0


def event_node(event: Raw) -> str:
    """The name of the node that an Event is about, or an empty string."""
    about = _about(event)
    return text(about, "name") if text(about, "kind") == "Node" else ""


def read_event(event: Raw, node: NodeReading, now_unix_s: float) -> Signal | None:
    """What an Event says about a node, or None.

    The node is found by name, for the kubelet writes a node's name where its UID belongs: an event
    older than the node is about an earlier one of that name.
    """
    if event_node(event) != node.name or not node.name:
        return None
    at_s = _time_s(event)
    at_s = now_unix_s if at_s is None else min(at_s, now_unix_s)
    if node.created_unix_s is not None and at_s < node.created_unix_s:
        return None
    reason = text(event, "reason")
    for rule in EVENTS:
        if rule.reason == reason and holds(rule.needs, spot=node.spot, deleting=False):
            return _signal(rule, event, node, at_s, now_unix_s)
    return None


def _signal(
    rule: EventRule, event: Raw, node: NodeReading, at_s: float, now_unix_s: float
) -> Signal | None:
    if rule.severity is Severity.HINT:
        if at_s + HINT_TTL_S <= now_unix_s:
            return None
        deadline_s, ttl_s = None, HINT_TTL_S - (now_unix_s - at_s)
    else:
        lead_s = NOTICE_S[node.cloud] if rule.lead_s is None else rule.lead_s
        if at_s + lead_s + EVENT_STALE_S <= now_unix_s:
            return None
        deadline_s = max(at_s + lead_s, now_unix_s)
        ttl_s = at_s + lead_s + EVENT_STALE_S - now_unix_s
    return Signal(
        kind=Place.EVENT,
        severity=rule.severity,
        source=rule.source,
        seen_unix_s=now_unix_s,
        deadline_unix_s=deadline_s,
        latched=rule.latched,
        ttl_s=ttl_s,
        detail=text(event, "message")[:200],
    )


def _about(event: Raw) -> Raw:
    """``involvedObject``, or ``regarding`` in the newer API group."""
    return child(event, "involvedObject") or child(event, "regarding")


def _time_s(event: Raw) -> float | None:
    """When it last happened: events are counted up in place."""
    times = (
        time_s(event, "series", "lastObservedTime"),
        time_s(event, "lastTimestamp"),
        time_s(event, "deprecatedLastTimestamp"),
        time_s(event, "eventTime"),
        time_s(event, "firstTimestamp"),
        time_s(event, "metadata", "creationTimestamp"),
    )
    return next((found for found in times if found is not None), None)
