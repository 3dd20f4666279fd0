"""The form of the tables' rows, and what users may add to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from parcae_operator.signals.model import Cloud, Place, Severity


class Needs(StrEnum):
    """What must hold of the node besides, for a row to match."""

    NOTHING = ""
    SPOT = "spot node"
    NOT_SPOT = "node that is not spot"
    DELETING = "node being deleted"
    NOT_DELETING = "node not being deleted"


class Clock(StrEnum):
    """Where a row's time comes from."""

    LEAD = "lead"
    """Its lead, counted from when the signal was set, else from when it was first seen."""
    VALUE_PLUS_LEAD = "value + lead"
    """Its value is when it was set, in seconds since 1970."""
    VALUE = "value"
    """Its value is when it happens, in seconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A label or taint that tells a spot node. It is there all the node's life: no notice."""

    key: str
    values: tuple[str, ...] = ()
    """In lower case; empty for any."""
    place: Place = Place.LABEL
    cloud: Cloud = Cloud.OTHER
    setter: str


@dataclass(frozen=True, kw_only=True)
class NodeRule:
    """A taint, label, annotation or condition that tells of a node's end."""

    source: str
    """The row's name, unique, at most 64 characters."""
    place: Place
    key: str
    """Of a condition: its type."""
    value: str = ""
    """Of a condition: its status. Empty for any; compared without regard to case."""
    has: str = ""
    """Text within a condition's reason or message, without regard to case."""
    severity: Severity
    needs: Needs = Needs.NOTHING
    lead_s: float | None = None
    """None: of a notice the cloud's own, see ``NOTICE_S``; of the rest unknown."""
    clock: Clock = Clock.LEAD
    latched: bool = False
    ttl_s: float | None = None
    """So long after it was first seen it counts no more; None: as long as it is there."""
    stale_after_s: float | None = None
    """A value so long past, on a ready node, was left behind: only a hint."""
    blocks: bool = True
    """New pods are kept away from a node that shows it."""
    cloud: Cloud = Cloud.OTHER
    setter: str


@dataclass(frozen=True, kw_only=True)
class EventRule:
    """A reason of a Kubernetes Event about a node. Events are lossy: they only raise."""

    reason: str
    severity: Severity
    needs: Needs = Needs.NOTHING
    lead_s: float | None = None
    latched: bool = False
    cloud: Cloud = Cloud.OTHER
    setter: str

    @property
    def source(self) -> str:
        """The row's name, at most 64 characters."""
        return f"event-{self.reason}"


@dataclass(frozen=True)
class UserTaint:
    """A taint of the user's own that means a notice."""

    key: str
    lead_s: float = 30.0
    """From when it is set to the instance's end."""
    latched: bool = True


@dataclass(frozen=True)
class SignalSettings:
    """What users may add. All keys are matched whole."""

    spot_labels: tuple[tuple[str, str], ...] = ()
    """Key and value of labels that tell spot nodes; ``*`` for any value."""
    doomed_taints: tuple[UserTaint, ...] = ()
    hint_taints: tuple[str, ...] = ()
    tolerated_taints: frozenset[str] = frozenset()
    """Keys that the job's pods tolerate, so that they keep nothing away."""
    resources: tuple[tuple[str, int], ...] = ()
    """What a worker wants of a node, as ``("nvidia.com/gpu", 1)``."""
    hint_ttl_s: float = 3600.0
    """How long a hint of the user's own counts."""

    def identities(self) -> tuple[Identity, ...]:
        """The user's own labels as rows."""
        return tuple(
            Identity(key=key, values=() if value == "*" else (value.lower(),), setter="user")
            for key, value in self.spot_labels
        )

    def rules(self) -> tuple[NodeRule, ...]:
        """The user's own taints as rows."""
        doomed = tuple(
            NodeRule(
                source=_name(taint.key),
                place=Place.TAINT,
                key=taint.key,
                severity=Severity.DOOMED,
                lead_s=taint.lead_s,
                latched=taint.latched,
                setter="user",
            )
            for taint in self.doomed_taints
        )
        hints = tuple(
            NodeRule(
                source=_name(key),
                place=Place.TAINT,
                key=key,
                severity=Severity.HINT,
                ttl_s=self.hint_ttl_s,
                setter="user",
            )
            for key in self.hint_taints
        )
        return doomed + hints


def _name(key: str) -> str:
    return f"user-{key}"[:64]
