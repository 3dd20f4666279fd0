"""Progress: what the grid's first worker reports after a committed step."""

from __future__ import annotations

from parcae_api.model import Contract


class Progress(Contract):
    """``progress``. Written when an epoch forms and, at most a few times a second, as it runs."""

    revision: int
    step: int
    """Committed steps."""
    samples: int
    """Committed samples."""
    loss: float | None = None
    step_seconds: float | None = None
    samples_per_second: float | None = None
    checkpoint_step: int | None = None
    """Of the newest checkpoint that has every layer, as far as the reporter has looked."""
    checkpoint_unix_s: float | None = None
    """When that was complete, by the clock of where it lies."""
    finished: bool = False
    """The last step of the job is committed and its final state written."""
