"""What is remembered of one node, and how an observation changes it. Pure.

Latched evidence is a join: severity only rises, the deadline only falls, and neither the order nor
the repetition of observations matters. Soft evidence comes and goes with what the cluster shows:
what disappears counts a little longer, so that a flapping node does not flap here.
"""

from __future__ import annotations

from parcae_api.model import Contract
from parcae_operator.signals.model import NodeReading, Place, Severity, Signal

CLEAR_AFTER_S = 10.0
"""How long a soft signal must be absent before it counts no more."""


class Evidence(Contract):
    """One signal, as remembered."""

    severity: Severity
    source: str
    deadline_unix_s: float | None = None
    since_unix_s: float
    """When it was first seen."""
    detail: str = ""


class Soft(Contract):
    """Evidence that may pass."""

    evidence: Evidence
    expires_unix_s: float | None = None
    ttl_s: float | None = None
    """Its time to live, when it was last renewed."""
    level: bool = True
    """It counts while the cluster shows it; otherwise, an event's, until it expires."""
    absent_since_unix_s: float | None = None

    def counts(self, now_unix_s: float) -> bool:
        """Whether it still says anything."""
        return self.expires_unix_s is None or now_unix_s < self.expires_unix_s


class NodeRecord(Contract):
    """One node, by its UID."""

    uid: str
    name: str = ""
    read_unix_s: float = 0.0
    """The newest reading of its object."""
    worst: Evidence | None = None
    """Of what is latched."""
    deadline_unix_s: float | None = None
    """The earliest of what is latched."""
    soft: dict[str, Soft] = {}
    """By source."""
    vanished_unix_s: float | None = None
    """Since when the cluster does not have it; None while it does."""

    def in_force(self, now_unix_s: float) -> list[Evidence]:
        """All that counts now, the worst first."""
        soft = [kept.evidence for kept in self.soft.values() if kept.counts(now_unix_s)]
        latched = [self.worst] if self.worst is not None else []
        if self.vanished_unix_s is not None:
            latched.append(
                Evidence(
                    severity=Severity.GONE,
                    source="node-vanished",
                    deadline_unix_s=self.vanished_unix_s,
                    since_unix_s=self.vanished_unix_s,
                )
            )
        return sorted([*latched, *soft], key=_rank)


def observed(record: NodeRecord, reading: NodeReading) -> NodeRecord:
    """The record after a reading of the node's object."""
    for signal in reading.signals:
        record = raised(record, signal)
    if reading.read_unix_s < record.read_unix_s:
        return record  # late: what it shows as absent, or as present, may be out of date
    present = {signal.source for signal in reading.signals if not signal.latched}
    soft = {
        source: _seen(kept, source in present, reading.read_unix_s)
        for source, kept in record.soft.items()
    }
    return aged(
        record.model_copy(
            update={
                "name": reading.name,
                "read_unix_s": reading.read_unix_s,
                "soft": soft,
                "vanished_unix_s": None,
            }
        ),
        reading.read_unix_s,
    )


def raised(record: NodeRecord, signal: Signal) -> NodeRecord:
    """The record after one signal, from wherever it comes."""
    evidence = Evidence(
        severity=signal.severity,
        source=signal.source,
        deadline_unix_s=signal.deadline_unix_s,
        since_unix_s=signal.seen_unix_s,
        detail=signal.detail,
    )
    if signal.latched:
        worst = evidence if record.worst is None else min(record.worst, evidence, key=_rank)
        return record.model_copy(
            update={
                "worst": worst,
                "deadline_unix_s": _earlier(record.deadline_unix_s, evidence.deadline_unix_s),
            }
        )
    level = signal.kind not in (Place.EVENT, Place.AGENT)
    if level and signal.seen_unix_s < record.read_unix_s:
        return record
    kept = record.soft.get(signal.source)
    return record.model_copy(
        update={"soft": {**record.soft, signal.source: _renewed(kept, evidence, signal, level)}}
    )


def set_back(record: NodeRecord, now_unix_s: float) -> NodeRecord:
    """The record after the clock was set back to a time: nothing in it is later than it can be.

    Deadlines stay: the earliest that was ever told counts.
    """

    def no_later(at_s: float | None, than_s: float | None) -> float | None:
        return at_s if at_s is None or than_s is None else min(at_s, than_s)

    soft = {
        source: kept.model_copy(
            update={
                "expires_unix_s": no_later(
                    kept.expires_unix_s, None if kept.ttl_s is None else now_unix_s + kept.ttl_s
                ),
                "absent_since_unix_s": no_later(kept.absent_since_unix_s, now_unix_s),
            }
        )
        for source, kept in record.soft.items()
    }
    return record.model_copy(
        update={
            "read_unix_s": min(record.read_unix_s, now_unix_s),
            "vanished_unix_s": no_later(record.vanished_unix_s, now_unix_s),
            "soft": soft,
        }
    )


def aged(record: NodeRecord, now_unix_s: float) -> NodeRecord:
    """The record without what has been absent for long enough, or has expired for good."""
    soft = {source: kept for source, kept in record.soft.items() if not _is_over(kept, now_unix_s)}
    return record if len(soft) == len(record.soft) else record.model_copy(update={"soft": soft})


def _renewed(kept: Soft | None, evidence: Evidence, signal: Signal, level: bool) -> Soft:
    expires_s = None if signal.ttl_s is None else signal.seen_unix_s + signal.ttl_s
    if kept is None:
        return Soft(evidence=evidence, expires_unix_s=expires_s, ttl_s=signal.ttl_s, level=level)
    if signal.severity >= Severity.DOOMED:  # counted from the first sight, never later
        earlier_s = _earlier(kept.evidence.deadline_unix_s, evidence.deadline_unix_s)
        evidence = evidence.model_copy(update={"deadline_unix_s": earlier_s})
    since_s = min(kept.evidence.since_unix_s, evidence.since_unix_s)
    if level:  # its time to live runs from when it was first seen
        expires_s = kept.expires_unix_s
    elif kept.expires_unix_s is not None and expires_s is not None:
        expires_s = max(kept.expires_unix_s, expires_s)
    return Soft(
        evidence=evidence.model_copy(update={"since_unix_s": since_s}),
        expires_unix_s=expires_s,
        ttl_s=kept.ttl_s if level else signal.ttl_s,
        level=level,
    )


def _seen(kept: Soft, present: bool, now_unix_s: float) -> Soft:
    if present or not kept.level or kept.absent_since_unix_s is not None:
        return kept
    return kept.model_copy(update={"absent_since_unix_s": now_unix_s})


def _is_over(kept: Soft, now_unix_s: float) -> bool:
    if kept.level:  # an expired hint stays known while it is shown, or it would begin anew
        absent_s = kept.absent_since_unix_s
        return absent_s is not None and now_unix_s - absent_s >= CLEAR_AFTER_S
    return not kept.counts(now_unix_s)


def _rank(evidence: Evidence) -> tuple[float, float, str, float, str]:
    """Worst first; the rest of the order only makes it total."""
    deadline_s = evidence.deadline_unix_s
    return (
        -evidence.severity,
        float("inf") if deadline_s is None else deadline_s,
        evidence.source,
        evidence.since_unix_s,
        evidence.detail,
    )


def _earlier(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return min(one, other)
