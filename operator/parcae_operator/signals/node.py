"""Reading a Node object: is it spot, can it be used, does it go away? Pure; never raises.

A node's name is no identity: clouds give a new instance the name of the old one. The UID is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parcae_operator.signals.identity import (
    ACCELERATOR_LABELS,
    GPU_RESOURCES,
    IDENTITY_TAINTS,
    SPOT,
    STARTUP_TAINT_PREFIXES,
    STARTUP_TAINTS,
)
from parcae_operator.signals.model import Cloud, NodeReading, Place, Severity, Signal
from parcae_operator.signals.raw import Raw, child, flag, items, number, text, time_s, unix_s
from parcae_operator.signals.rules import Clock, Identity, Needs, NodeRule, SignalSettings
from parcae_operator.signals.tables import NOTICE_S, RULES

_PROVIDERS = {"aws": Cloud.AWS, "gce": Cloud.GKE, "azure": Cloud.AZURE}
_LABEL_DOMAINS = {
    "eks.amazonaws.com/": Cloud.AWS,
    "k8s.amazonaws.com/": Cloud.AWS,
    "cloud.google.com/": Cloud.GKE,
    "kubernetes.azure.com/": Cloud.AZURE,
}
_MOST_DETAIL = 200


@dataclass(frozen=True)
class _Mark:
    """Something on a node that a rule may match."""

    value: str = ""
    text: str = ""
    set_unix_s: float | None = None


@dataclass(frozen=True)
class _Node:
    """What rules ask of a node besides their mark."""

    raw: Raw
    now_unix_s: float
    cloud: Cloud
    spot: bool
    ready: bool
    deleting: bool


def read_node(node: Raw, now_unix_s: float, settings: SignalSettings | None = None) -> NodeReading:
    """Read a Node object as the API server gives it. What it can't read it takes as absent."""
    settings = settings or SignalSettings()
    seen = _Node(
        raw=node,
        now_unix_s=now_unix_s,
        cloud=_cloud(node),
        spot=_is_spot(node, settings),
        ready=_is_ready(node),
        deleting=time_s(node, "metadata", "deletionTimestamp") is not None,
    )
    rules = RULES + settings.rules()
    marks = _marks(node)
    found = [
        (rule, signal)
        for rule in rules
        if (rule.place, rule.key) in marks
        for signal in _signals(rule, marks[rule.place, rule.key], seen)
    ]
    blocked = [rule.source for rule, _ in found if rule.blocks]
    return NodeReading(
        uid=text(node, "metadata", "uid"),
        name=text(node, "metadata", "name"),
        read_unix_s=now_unix_s,
        provider_id=text(node, "spec", "providerID"),
        created_unix_s=time_s(node, "metadata", "creationTimestamp"),
        boot_id=text(node, "status", "nodeInfo", "bootID"),
        cloud=seen.cloud,
        spot=seen.spot,
        ready=seen.ready,
        why_unusable=tuple(dict.fromkeys([*blocked, *_not_yet(seen, settings, rules)])),
        signals=tuple(signal for _, signal in found),
    )


def holds(needs: Needs, *, spot: bool, deleting: bool) -> bool:
    """Whether a node is as a row needs it to be."""
    match needs:
        case Needs.NOTHING:
            return True
        case Needs.SPOT:
            return spot
        case Needs.NOT_SPOT:
            return not spot
        case Needs.DELETING:
            return deleting
        case Needs.NOT_DELETING:
            return not deleting


def _cloud(node: Raw) -> Cloud:
    scheme, separator, _ = text(node, "spec", "providerID").partition("://")
    if separator and scheme in _PROVIDERS:
        return _PROVIDERS[scheme]
    for key in child(node, "metadata", "labels"):
        for domain, cloud in _LABEL_DOMAINS.items():
            if isinstance(key, str) and key.startswith(domain):
                return cloud
    return Cloud.OTHER


def _is_spot(node: Raw, settings: SignalSettings) -> bool:
    return any(_identifies(row, node) for row in SPOT + settings.identities())


def _identifies(row: Identity, node: Raw) -> bool:
    if row.place is Place.TAINT:
        values = [text(t, "value") for t in items(node, "spec", "taints") if _key(t) == row.key]
    else:
        labels = child(node, "metadata", "labels")
        values = [text(labels, row.key)] if row.key in labels else []
    return any(not row.values or value.lower() in row.values for value in values)


def _is_ready(node: Raw) -> bool:
    return any(
        text(condition, "type") == "Ready" and text(condition, "status") == "True"
        for condition in items(node, "status", "conditions")
    )


def _key(taint: Raw) -> str:
    return text(taint, "key")


def _signals(rule: NodeRule, marks: list[_Mark], node: _Node) -> Iterator[Signal]:
    if not holds(rule.needs, spot=node.spot, deleting=node.deleting):
        return
    for mark in marks:
        if rule.value and mark.value.lower() != rule.value.lower():
            continue
        if rule.has.lower() in mark.text.lower():
            yield _signal(rule, mark, node)
            return


def _marks(raw: Raw) -> dict[tuple[Place, str], list[_Mark]]:
    """All that a node shows, by place and key."""
    found: dict[tuple[Place, str], list[_Mark]] = {}

    def add(place: Place, key: str, mark: _Mark) -> None:
        found.setdefault((place, key), []).append(mark)

    for taint in items(raw, "spec", "taints"):
        mark = _Mark(text(taint, "value"), set_unix_s=time_s(taint, "timeAdded"))
        add(Place.TAINT, _key(taint), mark)
    for place in (Place.LABEL, Place.ANNOTATION):
        kept = child(raw, "metadata", f"{place}s")
        for key in kept:
            if isinstance(key, str):
                add(place, key, _Mark(text(kept, key)))
    for condition in items(raw, "status", "conditions"):
        words = f"{text(condition, 'reason')}: {text(condition, 'message')}"
        since_s = time_s(condition, "lastTransitionTime")
        mark = _Mark(text(condition, "status"), words, since_s)
        add(Place.CONDITION, text(condition, "type"), mark)
    if flag(raw, "spec", "unschedulable"):
        add(Place.CORDON, "spec.unschedulable", _Mark())
    deleted_s = time_s(raw, "metadata", "deletionTimestamp")
    if deleted_s is not None:
        add(Place.DELETION, "metadata.deletionTimestamp", _Mark(set_unix_s=deleted_s))
    return found


def _signal(rule: NodeRule, mark: _Mark, node: _Node) -> Signal:
    stale = (
        rule.stale_after_s is not None
        and node.ready
        and (unix_s(mark.value) or node.now_unix_s) < node.now_unix_s - rule.stale_after_s
    )
    return Signal(
        kind=rule.place,
        severity=Severity.HINT if stale else rule.severity,
        source=rule.source,
        seen_unix_s=node.now_unix_s,
        deadline_unix_s=None if stale else _deadline_unix_s(rule, mark, node),
        latched=rule.latched,
        ttl_s=rule.ttl_s,
        detail=f"{rule.key} {mark.value or mark.text}".strip()[:_MOST_DETAIL],
    )


def _deadline_unix_s(rule: NodeRule, mark: _Mark, node: _Node) -> float | None:
    if rule.clock is Clock.VALUE:
        return unix_s(mark.value)
    if rule.severity < Severity.DOOMED:
        return None
    lead_s = NOTICE_S[node.cloud] if rule.lead_s is None else rule.lead_s
    since = unix_s(mark.value) if rule.clock is Clock.VALUE_PLUS_LEAD else mark.set_unix_s
    if rule.has:  # a condition's status may be older than the text that tells
        since = None
    if since is None or since > node.now_unix_s:
        since = node.now_unix_s
    # Overdue and still there: at any moment.
    return max(since + lead_s, node.now_unix_s)


def _not_yet(node: _Node, settings: SignalSettings, rules: tuple[NodeRule, ...]) -> Iterator[str]:
    """What a node still lacks before a worker can start on it, besides the signals found."""
    if not node.ready:
        yield "not ready"
    taints = list(items(node.raw, "spec", "taints"))
    known = {rule.key for rule in rules if rule.place is Place.TAINT} if taints else set()
    known |= {key for key, _ in settings.spot_labels} | settings.tolerated_taints
    known |= IDENTITY_TAINTS
    for taint in taints:
        key = _key(taint)
        if key in STARTUP_TAINTS or key.startswith(STARTUP_TAINT_PREFIXES):
            yield f"starting: {key}"
        elif key not in known and text(taint, "effect") in ("NoSchedule", "NoExecute"):
            yield f"taint {key}"
    yield from _lacks_resources(node.raw, settings)
    labels = child(node.raw, "metadata", "labels")
    if "karpenter.sh/nodepool" in labels and not flag(labels, "karpenter.sh/initialized"):
        yield "starting: karpenter.sh/initialized is not true"


def _lacks_resources(raw: Raw, settings: SignalSettings) -> Iterator[str]:
    offered = child(raw, "status", "allocatable")
    for resource, wanted in settings.resources:
        if (number(offered, resource) or 0) < wanted:
            yield f"offers less than {wanted} of {resource}"
    if settings.resources or not any(
        label in child(raw, "metadata", "labels") for label in ACCELERATOR_LABELS
    ):
        return
    # The kubelet offers none until the device plugin has registered.
    if not any(number(offered, resource) for resource in GPU_RESOURCES):
        yield "has a GPU and does not offer it yet"
