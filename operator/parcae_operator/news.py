"""Who has come and who is about to go, each told once."""

from __future__ import annotations

from parcae_api.events import InstanceJoined, NoticeGiven
from parcae_operator.observation import Observation
from parcae_operator.view import EventSink


class News:
    """Compares each look with those before."""

    def __init__(self, report: EventSink) -> None:
        self._report = report
        self._has_looked = False
        self._ready: set[str] = set()
        self._noticed: set[str] = set()
        self._given_back: set[str] = set()

    def gave_back(self, pods: tuple[str, ...]) -> None:
        """These pods are not needed: that they go now is nobody's notice."""
        self._given_back.update(pods)

    def saw(self, seen: Observation) -> None:
        """Report what is new in this look."""
        if not self._has_looked and seen.plan is not None:
            # Adopted in mid-run: who is there already was reported when it came.
            self._ready.update(seen.agents)
        self._has_looked = True
        pods = {pod.name: pod for pod in seen.pods}
        for incarnation, agent in seen.agents.items():
            if incarnation not in self._ready and any(worker.ready for worker in agent.workers):
                self._ready.add(incarnation)
                self._report(
                    InstanceJoined(
                        at_unix_s=seen.now_unix_s, incarnation=incarnation, node=agent.node
                    )
                )
            pod = pods.get(agent.pod)
            notice = (pod.notice if pod else None) or agent.notice
            expected = agent.pod in self._given_back
            if notice is not None and not expected and incarnation not in self._noticed:
                self._noticed.add(incarnation)
                self._report(
                    NoticeGiven(
                        at_unix_s=seen.now_unix_s,
                        incarnation=incarnation,
                        node=agent.node,
                        deadline_unix_s=notice.deadline_unix_s,
                        source=notice.source,
                    )
                )
