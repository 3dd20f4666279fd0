"""Members that are off the board because it was away, not they. Pure.

An agent is on the board as long as its lease lives. When etcd was away for longer than that, or was
installed anew, all memberships are gone although every worker trains; they come back one by one, as
connections and names do. To plan for those that are back first would stop what runs.

Signs of it: nobody at all is on the board; or some go from it, one after the other, within seconds
of its return (a server that is back gives all leases their full time anew, once); or an operator
that has just come finds members that are back already, which their plan is older than.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from parcae_operator.observation import BOARD_AWAY, Observation, Pod, PodPhase
from parcae_operator.waits import is_over

_log = logging.getLogger(__name__)

LONGEST_S = 40.0
"""Names that were not found are remembered for 30 s in clusters, and connections back off."""
DOUBTFUL_S = 10.0
"""After the first look, and after the board was away: leases that nobody renewed end meanwhile."""


class Reunion:
    """Remembers who of the grid was on the board, and since when some are not."""

    def __init__(self) -> None:
        self._doubtful_since_unix_s: float | None = None
        self._were_there: frozenset[str] = frozenset()
        self._since_unix_s: float | None = None
        self._awaited: frozenset[str] = frozenset()

    def on(self, seen: Observation) -> Observation:
        """The look, and whom of the grid to wait for: their pods are well, and time is left."""
        members = _members(seen)
        gone = self._gone_in_doubt(seen, members) if seen.agents else members
        before = self._awaited
        if gone:
            if self._since_unix_s is None:
                self._since_unix_s = seen.now_unix_s
            self._awaited |= gone
        elif not self._awaited:
            self._since_unix_s = None
        if self._since_unix_s is None:
            return seen
        self._awaited = frozenset(self._left(seen, members))
        if new := self._awaited - before:
            _log.info("not on the board, though their pods run: %s", ", ".join(sorted(new)))
        return replace(seen, awaited=self._awaited)

    def _gone_in_doubt(self, seen: Observation, members: frozenset[str]) -> frozenset[str]:
        """Those that went from the board while that says little."""
        is_away = any(trouble.reason == BOARD_AWAY for trouble in seen.troubles)
        if self._doubtful_since_unix_s is None or is_away:
            self._doubtful_since_unix_s = seen.now_unix_s
        here = members & seen.agents.keys()
        if is_over(self._doubtful_since_unix_s, seen.now_unix_s, DOUBTFUL_S):
            self._were_there = here
            return frozenset()
        # What one of them went through, the others did.
        self._were_there |= members if seen.returned & members else here
        return (self._were_there & members) - here

    def _left(self, seen: Observation, members: frozenset[str]) -> Iterable[str]:
        assert self._since_unix_s is not None
        if is_over(self._since_unix_s, seen.now_unix_s, LONGEST_S):
            return ()
        away = (self._awaited & members) - seen.agents.keys()
        return (each for each in away if _is_well(each, seen.pods))


def _members(seen: Observation) -> frozenset[str]:
    """Incarnations of agents in the grid."""
    workers = seen.plan.workers if seen.plan is not None else ()
    return frozenset(worker.partition("/")[0] for worker in workers)


def _is_well(incarnation: str, pods: Iterable[Pod]) -> bool:
    return any(
        pod.phase is PodPhase.RUNNING
        and pod.notice is None
        and (incarnation == pod.name or incarnation.startswith(f"{pod.name}-"))
        for pod in pods
    )
