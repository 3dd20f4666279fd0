"""Which sources of notices are told apart. Data.

An agent writes its source itself, and the user's code runs beside it: what is not known here counts
as ``other``, so that no one can make new time series without end.
"""

from __future__ import annotations

from parcae_operator.signals.event_tables import EVENTS
from parcae_operator.signals.model import Loss, Severity
from parcae_operator.signals.tables import RULES

SIGTERM = "sigterm"
"""An agent's, about its pod alone."""
POD_PREFIX = "pod-"
"""Of a pod that is being deleted, with the reason."""
OTHER = "other"
AGENT_SOURCES = (
    SIGTERM,
    "aws-spot-terminate",
    "aws-spot-stop",
    "aws-spot-hibernate",
    "aws-asg-terminated",
    "aws-rebalance",
    "gce-preempted",
    "gce-maintenance-terminate",
    "azure-preempt",
    "azure-terminate",
    "azure-redeploy",
)
SEVERITIES = {
    Severity.SUSPECT: "suspect",
    Severity.HINT: "hint",
    Severity.DOOMED: "notice",
    Severity.GONE: "gone",
}
"""As docs/notices.md calls them."""

_KNOWN = frozenset(
    {
        *(rule.source for rule in RULES),
        *(rule.source for rule in EVENTS),
        *(f"{POD_PREFIX}{loss.value}" for loss in Loss),
        *AGENT_SOURCES,
    }
)


def told_as(source: str) -> str:
    """The source's label."""
    return source if source in _KNOWN else OTHER
