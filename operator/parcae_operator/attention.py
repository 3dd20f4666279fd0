"""When a better layout is worth looking for although nothing has to change. Pure.

While someone stands by, another layout might be better at any moment: measured speeds scatter.
Asking the planner at every look would load it for nothing.
"""

from __future__ import annotations

from dataclasses import replace

from parcae_operator.observation import Observation, is_formed, staying_instances
from parcae_operator.waits import is_over

LONGEST_S = 5.0
"""Between two such questions about the same instances."""
_PER_INTERVAL = 12


class Attention:
    """Remembers what was asked about, and when.

    Args:
        interval_s: The planning interval; None where nothing is planned ahead.
    """

    def __init__(self, interval_s: float | None) -> None:
        self._again_after_s = min(LONGEST_S, (interval_s or 0.0) / _PER_INTERVAL)
        self._about: tuple[object, ...] = ()
        self._asked_unix_s = float("-inf")
        self.due_unix_s = float("inf")
        """When to look again at the latest."""

    def remind(self, at_unix_s: float) -> None:
        """Look again then, at the latest."""
        self.due_unix_s = at_unix_s

    def on(self, seen: Observation) -> Observation:
        """The look, and whether it is only more of the same."""
        revision = seen.plan.revision if seen.plan else 0
        about = (
            staying_instances(seen),
            seen.starting,
            revision,
            is_formed(seen),
            seen.job.spec,
        )
        has_waited = is_over(self._asked_unix_s, seen.now_unix_s, self._again_after_s)
        is_due = seen.now_unix_s >= self.due_unix_s
        if about == self._about and not has_waited and not is_due:
            return replace(seen, more_of_the_same=True)
        self._about, self._asked_unix_s = about, seen.now_unix_s
        self.due_unix_s = float("inf")
        return seen
