"""Crashes of the user's code: how many there were, and when to try again. Pure.

One fault shows on many workers within seconds, so crashes are counted by bursts. What ends an
instance is never counted here.
"""

from __future__ import annotations

from dataclasses import dataclass

from parcae_api.events import Failed
from parcae_operator.observation import Observation, Pod
from parcae_operator.waits import is_over

BURST_S = 10.0
"""Crashes no further apart are one."""
FIRST_BACKOFF_S = 10.0
LONGEST_BACKOFF_S = 300.0


@dataclass(frozen=True)
class Attempt:
    """One burst of crashes."""

    first_unix_s: float
    last_unix_s: float
    message: str
    """Of the first that has a traceback, else of the first."""
    traceback: str


def attempts(seen: Observation) -> tuple[Attempt, ...]:
    """The bursts so far, oldest first: what workers reported and what the cluster saw."""
    failures = (*seen.failures, *unreported(seen))
    crashes = [Attempt(f.at_unix_s, f.at_unix_s, f.message, f.traceback) for f in failures]
    bursts: list[Attempt] = []
    for crash in sorted(crashes, key=lambda c: c.first_unix_s):
        if bursts and crash.first_unix_s - bursts[-1].last_unix_s <= BURST_S:
            last = bursts.pop()
            says_more = crash if crash.traceback and not last.traceback else last
            crash = Attempt(
                last.first_unix_s, crash.last_unix_s, says_more.message, says_more.traceback
            )
        bursts.append(crash)
    return tuple(bursts)


def unreported(seen: Observation) -> tuple[Failed, ...]:
    """Crashes that the cluster alone saw: the board has to keep them, pods' objects vanish."""
    reported = {failure.worker.partition("/")[0] for failure in seen.failures}
    pods = {seen.agents[i].pod for i in reported if i in seen.agents}
    pods |= {incarnation.rpartition("-")[0] for incarnation in reported}
    return tuple(_failed(pod) for pod in seen.pods if pod.crash and pod.name not in pods)


def _failed(pod: Pod) -> Failed:
    assert pod.crash is not None
    return Failed(
        at_unix_s=pod.crash.at_unix_s,
        worker=f"{pod.name}-pod/0",
        step=None,
        message=pod.crash.message,
    )


def may_retry(past: tuple[Attempt, ...], now_unix_s: float) -> bool:
    """Whether pods may be asked for again; the wait doubles with every attempt."""
    wait_s = backoff_s(len(past))
    return all(is_over(attempt.last_unix_s, now_unix_s, wait_s) for attempt in past)


def backoff_s(num_attempts: int) -> float:
    """How long to wait after the last of so many attempts."""
    return min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(num_attempts - 1, 16))
