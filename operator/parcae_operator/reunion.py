"""Members that are off the board all at once: it was the board that went, not they. Pure.

An agent is on the board as long as its lease lives. When etcd was away for longer than that, or was
installed anew, all memberships are gone although every worker trains; they come back one by one, as
connections and names do. To plan for those that are back first would stop what runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from parcae_operator.observation import Observation, Pod, PodPhase

_log = logging.getLogger(__name__)

LONGEST_S = 40.0
"""Names that were not found are remembered for 30 s in clusters, and connections back off."""


class Reunion:
    """Remembers since when nobody of the grid was on the board."""

    def __init__(self) -> None:
        self._since_unix_s: float | None = None
        self._awaited: frozenset[str] = frozenset()

    def on(self, seen: Observation) -> Observation:
        """The look, and whom of the grid to wait for: their pods are well, and time is left."""
        members = _members(seen)
        if not members & seen.agents.keys():
            if self._since_unix_s is None:
                self._since_unix_s, self._awaited = seen.now_unix_s, members
        elif not self._awaited:
            self._since_unix_s = None
        if self._since_unix_s is None:
            return seen
        before, self._awaited = self._awaited, frozenset(self._left(seen, members))
        if self._awaited and self._awaited != before:
            _log.info("not on the board, though their pods run: %s", ", ".join(self._awaited))
        return replace(seen, awaited=self._awaited)

    def _left(self, seen: Observation, members: frozenset[str]) -> Iterable[str]:
        assert self._since_unix_s is not None
        if not 0 <= seen.now_unix_s - self._since_unix_s < LONGEST_S:
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
