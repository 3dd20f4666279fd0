"""What a cloud's metadata service says about its instance, and what is remembered of it. Pure.

A certain sign is a notice: latched, its deadline only falls. The rest are hints: they count while
the service shows them. An answer that does not come changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from parcae_api.membership import Hint, Notice

CERTAIN_WITHIN_S = 120.0
"""A planned stop may be called off for days; so close to its time it is taken as a notice."""


@dataclass(frozen=True)
class Sign:
    """One thing that the service says now."""

    source: str
    """Cloud and kind, at most 64 characters."""
    certain: bool
    deadline_unix_s: float | None = None
    """When the instance goes, or may; None where the service does not say."""
    lead_s: float | None = None
    """Without a deadline: from when it is first heard to the end."""

    def falls_due(self, now_unix_s: float) -> float | None:
        """The deadline in seconds since 1970, if there is any."""
        if self.deadline_unix_s is not None or self.lead_s is None:
            return self.deadline_unix_s
        return now_unix_s + self.lead_s


def planned(source: str, not_before_unix_s: float, now_unix_s: float) -> Sign:
    """A stop that is planned for a time: a hint, and a notice shortly before."""
    near = not_before_unix_s <= now_unix_s + CERTAIN_WITHIN_S
    return Sign(source, certain=near, deadline_unix_s=max(not_before_unix_s, now_unix_s))


@dataclass(frozen=True)
class Heard:
    """All that has been heard so far."""

    notice: Notice | None = None
    hint: Hint | None = None
    """The one that falls due first."""


class Hearing:
    """Remembers. One question's answer replaces that question's last one."""

    def __init__(self) -> None:
        self._notice: Notice | None = None
        self._hints: dict[tuple[str, str], Hint] = {}

    @property
    def heard(self) -> Heard:
        """All that counts now."""
        first = min(self._hints.values(), key=_due, default=None)
        return Heard(self._notice, first)

    def take(self, question: str, signs: Iterable[Sign], now_unix_s: float) -> Heard:
        """Take one question's whole answer in."""
        before = self._hints
        self._hints = {key: hint for key, hint in before.items() if key[0] != question}
        for sign in signs:
            due_s = sign.falls_due(now_unix_s)
            if sign.certain:
                self._take_notice(sign.source, now_unix_s if due_s is None else due_s)
                continue
            key = (question, sign.source)
            known = before.get(key)
            since_s = known.since_unix_s if known else now_unix_s
            if known and sign.deadline_unix_s is None:
                due_s = known.deadline_unix_s  # counted from when it was first heard
            self._hints[key] = Hint(source=sign.source, since_unix_s=since_s, deadline_unix_s=due_s)
        return self.heard

    def _take_notice(self, source: str, deadline_unix_s: float) -> None:
        if self._notice is None or deadline_unix_s < self._notice.deadline_unix_s:
            self._notice = Notice(deadline_unix_s=deadline_unix_s, source=source)


def _due(hint: Hint) -> tuple[float, str]:
    return (float("inf") if hint.deadline_unix_s is None else hint.deadline_unix_s, hint.source)
