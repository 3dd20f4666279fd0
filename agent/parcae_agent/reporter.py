"""Reports of the grid's first worker: progress, measurements, and what each plan change cost."""

from __future__ import annotations

import time
from collections.abc import Callable

from parcae_agent.forming import Formed
from parcae_agent.link import Advanced, Happened, Link, Measured
from parcae_agent.saver import Complete
from parcae_agent.shapes import Survey
from parcae_agent.vote import Outcome
from parcae_api.events import Migration, MigrationKind, RolledBack
from parcae_api.plan import Plan
from parcae_api.progress import Progress

PROGRESS_SECONDS = 0.5
"""Between two reports while all goes well: most of what a job that trains asks of the board."""
_PROFILE_SECONDS = 2.0
_SMOOTHING = 0.1


class Reporter:
    """Silent on all workers but the grid's first."""

    def __init__(
        self,
        link: Link,
        survey: Survey,
        formed: Formed,
        newest_checkpoint: Callable[[], Complete | None] = lambda: None,
    ) -> None:
        self._link = link
        self._newest_checkpoint = newest_checkpoint
        self._profile = survey.profile
        self._formed = formed
        self._speaks = formed.cell == (0, 0)
        self._seconds: list[float] | None = None
        self._step_seconds: float | None = None
        self._last_progress = 0.0
        self._last_profile = time.monotonic()

    def formed(self, step: int) -> None:
        """The epoch has formed and its first step begins."""
        if not self._speaks:
            return
        agreement, plan = self._formed.agreement, self._formed.plan
        now = time.time()
        if not agreement.first:
            last = agreement.last_commit_unix_s
            event = Migration(
                at_unix_s=now,
                revision=plan.revision,
                kind=_kind(self._formed),
                reason=plan.reason,
                resumed_step=step,
                bytes_moved=self._formed.bytes_moved,
                pause_seconds=max(0.0, now - last) if last is not None else 0.0,
                transfer_seconds=self._formed.transfer_seconds,
                steps_replayed=agreement.steps_replayed,
                sudden=plan.reason.breaks_the_epoch,
            )
            self._link.send(Happened(event=event))
        if agreement.rolled_back_from is not None:
            self._link.send(
                Happened(
                    event=RolledBack(
                        at_unix_s=now,
                        revision=plan.revision,
                        from_step=agreement.rolled_back_from,
                        to_step=step,
                        layers=tuple(self._profile.layers[k].name for k in agreement.restore),
                    )
                )
            )
        self._send_progress(plan, step, None)

    def stepped(self, step: int, outcome: Outcome, seconds: float) -> None:
        """A step was committed."""
        if not self._speaks:
            return
        self._smooth(outcome, seconds)
        now = time.monotonic()
        is_last = outcome.leaves or step >= self._profile.total_steps
        if is_last or now - self._last_progress >= PROGRESS_SECONDS:
            self._last_progress = now
            self._send_progress(self._formed.plan, step, outcome.loss)
        if now - self._last_profile >= _PROFILE_SECONDS:
            self._last_profile = now
            self._send_profile()

    def _smooth(self, outcome: Outcome, seconds: float) -> None:
        if self._seconds is None or self._step_seconds is None:
            self._seconds, self._step_seconds = list(outcome.layer_seconds), seconds
            return
        keep = 1 - _SMOOTHING
        self._step_seconds = keep * self._step_seconds + _SMOOTHING * seconds
        self._seconds = [
            keep * old + _SMOOTHING * new
            for old, new in zip(self._seconds, outcome.layer_seconds, strict=True)
        ]

    def _send_progress(self, plan: Plan, step: int, loss: float | None) -> None:
        batch = self._profile.global_batch_samples
        speed = batch / self._step_seconds if self._step_seconds else None
        newest = self._newest_checkpoint()
        progress = Progress(
            revision=plan.revision,
            step=step,
            samples=step * batch,
            loss=loss,
            step_seconds=self._step_seconds,
            samples_per_second=speed,
            checkpoint_step=newest.step if newest else None,
            checkpoint_unix_s=newest.at_unix_s if newest else None,
        )
        self._link.send(Advanced(progress=progress))

    def _send_profile(self) -> None:
        assert self._seconds is not None
        layers = tuple(
            layer.model_copy(update={"seconds": seconds})
            for layer, seconds in zip(self._profile.layers, self._seconds, strict=True)
        )
        self._link.send(Measured(profile=self._profile.model_copy(update={"layers": layers})))


def _kind(formed: Formed) -> MigrationKind:
    """What the change moved; a first formation after a restart counts as a pipeline's."""
    assert formed.plan.layout is not None
    if formed.agreement.previous_boundaries != formed.plan.layout.boundaries:
        return MigrationKind.PIPELINE
    if formed.bytes_moved:
        return MigrationKind.INTER_STAGE
    return MigrationKind.INTRA_STAGE
