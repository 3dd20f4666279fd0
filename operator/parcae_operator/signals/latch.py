"""The latch: what is known of every node, by UID, over time. Notices for some, hints for others.

States: healthy < suspect < hint < doomed < gone. A notice that nobody takes back stays until the
node's UID is gone, whatever its object shows later; the rest clears after a debounce or expires.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from parcae_api.membership import Hint, Notice
from parcae_api.model import Contract
from parcae_operator.signals.model import NodeReading, Place, Severity, Signal
from parcae_operator.signals.record import (
    Evidence,
    NodeRecord,
    aged,
    observed,
    raised,
    set_back,
)
from parcae_operator.signals.tables import REBALANCE_TTL_S

KEEP_VANISHED_S = 600.0
"""How long a node is remembered that the cluster does not have any more."""
HINT_RENEWED_S = 60.0
"""How long an agent's hint counts after it was last shown."""
SET_BACK_S = 60.0
"""Readings that are older than others by more than this were made by a clock that was set back."""
_LONGEST_SOURCE = 64


@dataclass(frozen=True)
class NodeState:
    """How a node stands."""

    uid: str
    severity: Severity = Severity.HEALTHY
    source: str = ""
    """What says so."""
    deadline_unix_s: float | None = None
    """When it goes; of a hint: when it may. None where nothing tells."""
    since_unix_s: float | None = None
    detail: str = ""

    @property
    def doomed(self) -> bool:
        """Whether it goes, or is gone."""
        return self.severity >= Severity.DOOMED

    @property
    def notice(self) -> Notice | None:
        """For the controller and the agents."""
        if not self.doomed or self.deadline_unix_s is None:
            return None
        return Notice(deadline_unix_s=self.deadline_unix_s, source=self.source[:_LONGEST_SOURCE])


class LatchRecords(Contract):
    """All that a latch knows, as JSON for its successor."""

    records: tuple[NodeRecord, ...] = ()


class NoticeLatch:
    """One record per node. Not thread-safe: it belongs to one loop."""

    def __init__(self, kept: LatchRecords | None = None) -> None:
        """``kept`` is what an earlier latch knew, see ``snapshot``."""
        records = kept.records if kept is not None else ()
        self._records: dict[str, NodeRecord] = {record.uid: record for record in records}
        self._now_unix_s = max((record.read_unix_s for record in records), default=0.0)

    def observe(self, reading: NodeReading) -> NodeState:
        """Take a reading of a node in. Doing so twice changes nothing.

        A reading without a UID is nobody's and leaves no trace.
        """
        if not reading.uid:
            return NodeState(uid="")
        self._pass_time(reading.read_unix_s)
        record = self._records.get(reading.uid) or NodeRecord(uid=reading.uid)
        self._records[reading.uid] = observed(record, reading)
        return self.state(reading.uid)

    def raise_(self, uid: str, signal: Signal) -> NodeState:
        """Take one signal in that is not on the node's object: an event's."""
        if not uid:
            return NodeState(uid="")
        self._pass_time(signal.seen_unix_s)
        record = self._records.get(uid) or NodeRecord(uid=uid)
        self._records[uid] = raised(record, signal)
        return self.state(uid)

    def raise_notice(self, uid: str, notice: Notice, now_unix_s: float) -> NodeState:
        """Take in what an agent on the node has heard from its cloud.

        All jobs' pods on that node then have it. Not for an agent's SIGTERM: that is about a pod.
        """
        return self.raise_(
            uid,
            Signal(
                kind=Place.AGENT,
                severity=Severity.DOOMED,
                source=notice.source,
                seen_unix_s=now_unix_s,
                deadline_unix_s=notice.deadline_unix_s,
                latched=True,
            ),
        )

    def raise_hint(self, uid: str, hint: Hint, now_unix_s: float) -> NodeState:
        """Take in that an agent on the node shows a hint of its cloud; say so while it does.

        It counts for a minute after the last time, and for an hour at most.
        """
        ttl_s = min(HINT_RENEWED_S, hint.since_unix_s + REBALANCE_TTL_S - now_unix_s)
        if ttl_s <= 0:
            self._pass_time(now_unix_s)
            return self.state(uid)
        return self.raise_(
            uid,
            Signal(
                kind=Place.AGENT,
                severity=Severity.HINT,
                source=hint.source,
                seen_unix_s=now_unix_s,
                deadline_unix_s=hint.deadline_unix_s,
                ttl_s=ttl_s,
            ),
        )

    def settle(self, present: Collection[str], now_unix_s: float) -> None:
        """Compare with a complete list of the cluster's nodes, by UID.

        A node that is not in it is gone, and forgotten some minutes later. If it is observed again
        after all, the list was wrong and it is not gone.
        """
        self._pass_time(now_unix_s)
        for uid, record in list(self._records.items()):
            if uid in present:
                self._records[uid] = aged(record, now_unix_s)
            elif record.vanished_unix_s is None:
                self._records[uid] = record.model_copy(update={"vanished_unix_s": now_unix_s})
            elif now_unix_s - record.vanished_unix_s >= KEEP_VANISHED_S:
                del self._records[uid]

    def state(self, uid: str) -> NodeState:
        """How a node stands; an unknown one is healthy."""
        record = self._records.get(uid)
        evidence = record.in_force(self._now_unix_s) if record is not None else []
        if record is None or not evidence:
            return NodeState(uid=uid)
        worst = evidence[0]
        return NodeState(
            uid=uid,
            severity=worst.severity,
            source=worst.source,
            deadline_unix_s=_deadline(record, worst, evidence),
            since_unix_s=worst.since_unix_s,
            detail=worst.detail,
        )

    def states(self) -> Mapping[str, NodeState]:
        """How all known nodes stand, by UID."""
        return {uid: self.state(uid) for uid in self._records}

    def notices(self) -> Mapping[str, Notice]:
        """For nodes that go away or are gone, by UID."""
        found = {uid: state.notice for uid, state in self.states().items()}
        return {uid: notice for uid, notice in found.items() if notice is not None}

    def hints(self) -> Mapping[str, NodeState]:
        """Nodes that may go, by UID: for the forecast, not for the plan."""
        return self._of(Severity.HINT)

    def suspects(self) -> Mapping[str, NodeState]:
        """Nodes that are silent or not ready, by UID: confirm before acting."""
        return self._of(Severity.SUSPECT)

    def snapshot(self) -> LatchRecords:
        """All that is known, for a successor of this program."""
        return LatchRecords(records=tuple(self._records.values()))

    def _of(self, severity: Severity) -> Mapping[str, NodeState]:
        return {uid: state for uid, state in self.states().items() if state.severity is severity}

    def _pass_time(self, now_unix_s: float) -> None:
        if self._now_unix_s - now_unix_s > SET_BACK_S:
            # Else nothing new would count until the old time is reached.
            self._records = {uid: set_back(r, now_unix_s) for uid, r in self._records.items()}
            self._now_unix_s = now_unix_s
        self._now_unix_s = max(self._now_unix_s, now_unix_s)


def _deadline(record: NodeRecord, worst: Evidence, evidence: list[Evidence]) -> float | None:
    """The earliest that anything in force says, of the kind that counts."""
    if worst.severity < Severity.DOOMED:
        return worst.deadline_unix_s
    doomed = [found for found in evidence if found.severity >= Severity.DOOMED]
    deadlines = [record.deadline_unix_s, *(found.deadline_unix_s for found in doomed)]
    return min((at_s for at_s in deadlines if at_s is not None), default=None)
