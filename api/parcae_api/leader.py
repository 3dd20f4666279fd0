"""Which operator drives a job: it alone asks for pods and writes the status."""

from __future__ import annotations

from parcae_api.model import Contract


class Leader(Contract):
    """``leader``, alive as long as its operator's lease."""

    identity: str
    """Of one start of an operator: a restarted one is another."""
    since_unix_s: float
