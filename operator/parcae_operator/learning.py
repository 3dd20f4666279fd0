"""What training itself teaches of speeds and costs; it corrects what profiles predict. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from parcae_api.events import Migration
from parcae_api.plan import Plan
from parcae_api.profile import Profile
from parcae_api.progress import Progress

_NEW_WEIGHT = 0.3
"""Of a new measurement in the running mean."""
_ENOUGH_BYTES = 1_000_000
"""Fewer bytes than this say nothing of a link's bandwidth."""


class Learnt:
    """Running means, by configuration where they depend on it."""

    def __init__(self) -> None:
        self._step_seconds: dict[str, float] = {}
        self._regroup_seconds: float | None = None
        self._bandwidth_bytes_per_s: float | None = None
        self._seen: tuple[int, int] = (0, 0)

    @property
    def step_seconds(self) -> Mapping[str, float]:
        """Of every configuration that has trained, to three digits: noise is no news."""
        return {name: float(f"{value:.3g}") for name, value in self._step_seconds.items()}

    def saw_progress(self, progress: Progress | None, plan: Plan | None) -> None:
        """Take in a report of the current plan; the same one twice counts once."""
        if progress is None or plan is None or plan.layout is None:
            return
        if progress.revision != plan.revision or not progress.step_seconds:
            return
        if (progress.revision, progress.step) == self._seen:
            return
        self._seen = (progress.revision, progress.step)
        name = str(plan.layout.configuration)
        self._step_seconds[name] = _mean(self._step_seconds.get(name), progress.step_seconds)

    def saw_migration(self, migration: Migration) -> None:
        """Take in what a plan change cost. After a sudden loss the pause holds lost work, too."""
        if migration.sudden or migration.steps_replayed:
            return
        regroup = max(0.001, migration.pause_seconds - migration.transfer_seconds)
        self._regroup_seconds = _mean(self._regroup_seconds, regroup)
        if migration.bytes_moved >= _ENOUGH_BYTES and migration.transfer_seconds > 0:
            bandwidth = migration.bytes_moved / migration.transfer_seconds
            self._bandwidth_bytes_per_s = _mean(self._bandwidth_bytes_per_s, bandwidth)

    def corrected(self, profile: Profile) -> Profile:
        """The profile with the measured costs of changes, to two digits."""
        update = {
            "regroup_seconds": self._regroup_seconds,
            "bandwidth_bytes_per_s": self._bandwidth_bytes_per_s,
        }
        known = {name: float(f"{value:.2g}") for name, value in update.items() if value}
        return profile.model_copy(update=known) if known else profile


def _mean(old: float | None, new: float) -> float:
    return new if old is None else (1 - _NEW_WEIGHT) * old + _NEW_WEIGHT * new
