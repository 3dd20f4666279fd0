"""The default: hazards by age, pooled with replayed windows.

Per interval and path: a removal event comes with the hazard of the times since the last removal and
the last addition; if none comes and there is room, an addition event likewise. Sizes are drawn from
the law of those seen, with its probability of "all". Half of the paths are replayed windows
instead, which know sequences that no hazard describes; while there are few windows, fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from parcae_predictor.asking import check_question
from parcae_predictor.batches import Floats, Sizes, from_shares
from parcae_predictor.forecast import Counts, Forecast, Question
from parcae_predictor.prior import Prior, load_prior
from parcae_predictor.rates import OLDEST, Rows, look, rows_of
from parcae_predictor.settling import due_removals, settle
from parcae_predictor.window import LONGEST_MEMORY, num_windows, replay, similarity


@dataclass(frozen=True, slots=True)
class HazardSettings:
    """Chosen on all recordings together, never per recording; scores are flat around them."""

    half_life: float = 120.0
    """Intervals after which what was seen counts half."""
    shrinkage: float = 40.0
    """Intervals of the pooled rate that each bucket of age is mixed with."""
    prior_intervals: float = 30.0
    """How long a history the other recordings are worth."""
    replayed: float = 0.5
    """Share of the paths that are replayed windows, once there are many."""
    windows_for_half: float = 30.0
    """Windows seen at which half of that share is reached."""


@dataclass(frozen=True, slots=True)
class Law:
    """What the hazard model draws from; a stochastic programme may integrate it instead."""

    removal: Floats
    """[age since removal, age since addition]: probability of a removal event in an interval.

    Ages are 1 to ``OLDEST``, which stands for all later ones; an event sets its age to 1."""
    addition: Floats
    """Likewise of an addition event, given that nothing is removed and there is room."""
    removal_sizes: Sizes
    addition_sizes: Sizes
    removal_age: int
    """In the first interval ahead."""
    addition_age: int


class HazardPredictor:
    """Marked hazards by age with forgetting, a prior for the start, pooled with replay."""

    name = "hazard"

    def __init__(self, prior: Prior | None = None, settings: HazardSettings | None = None) -> None:
        """Take a prior and settings.

        Args:
            prior: None: from all bundled recordings. To judge a forecast on one of them, give
                one without it.
            settings: None: the defaults.
        """
        self._prior = load_prior() if prior is None else prior
        self._settings = HazardSettings() if settings is None else settings

    def law(self, question: Question) -> Law:
        """Hazards and sizes for the coming intervals, without the windows and the known.

        Raises:
            InputError: the question contradicts itself.
        """
        check_question(question)
        return self._law(question, rows_of(question.series, LONGEST_MEMORY))

    def forecast(self, question: Question) -> Forecast:
        """Draw from the law, and replay.

        Raises:
            InputError: the question contradicts itself.
        """
        check_question(question)
        rng = np.random.default_rng(question.seed)
        due = due_removals(question, rng)
        rows = rows_of(question.series, LONGEST_MEMORY)
        replayed = self._num_replayed(rows, question)
        alike = similarity(rows, question.horizon, question.now, question.capacity)
        again = replay(rows, replayed, question.horizon, rng, alike)
        drawn = draw(self._law(question, rows), question, due[replayed:], rng)
        removed, added = (np.concatenate(pair) for pair in zip(again, drawn, strict=True))
        return settle(self.name, question, removed, added, due)

    def _num_replayed(self, rows: Rows, question: Question) -> int:
        windows = num_windows(rows, question.horizon)
        share = self._settings.replayed * windows / (windows + self._settings.windows_for_half)
        return round(question.num_paths * share)

    def _law(self, question: Question, rows: Rows) -> Law:
        settings, prior = self._settings, self._prior
        seen = look(rows, question.capacity, settings.half_life)
        worth = settings.prior_intervals
        removed_before = from_shares(
            prior.removal_shares,
            worth * float(prior.removals.since_removal.events.sum()),
            question.now,
        )
        added_before = from_shares(
            prior.addition_shares,
            worth * float(prior.additions.since_removal.events.sum()),
            question.capacity,
        )
        return Law(
            seen.removals.plus(prior.removals, worth).hazard(settings.shrinkage),
            seen.additions.plus(prior.additions, worth).hazard(settings.shrinkage),
            seen.removal_batches.plus(removed_before).law(),
            seen.addition_batches.plus(added_before).law(),
            seen.removal_age,
            seen.addition_age,
        )


def draw(
    law: Law, question: Question, due: Counts, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """Play the law forward, interval by interval, on all paths at once.

    Args:
        law: What to draw from.
        question: Count, capacity and horizon.
        due: [paths, horizon]: removals that are known to come; they set the age like others.
        rng: Source of the draws.

    Returns:
        removed, added: each [paths, horizon].
    """
    num_paths, horizon = due.shape
    # Intervals come first in here: numpy is fastest along rows.
    chances = rng.random((horizon, 2, num_paths))
    removal_sizes = _sizes(chances[:, 0] < law.removal.max(), law.removal_sizes, rng)
    addition_sizes = _sizes(chances[:, 1] < law.addition.max(), law.addition_sizes, rng)
    hazards = np.stack([law.removal.ravel(), law.addition.ravel()])
    removed, added = np.array(due.T, order="C"), np.empty((horizon, num_paths), dtype=np.int64)
    count = np.full(num_paths, question.now, dtype=np.int64)
    removal_age = np.full(num_paths, law.removal_age)
    addition_age = np.full(num_paths, law.addition_age)
    for ahead in range(horizon):
        hazard = hazards.take(removal_age * (OLDEST + 1) + addition_age, axis=1)
        strikes, arrives = chances[ahead] < hazard
        gone, come = removed[ahead], added[ahead]
        np.maximum(gone, strikes * removal_sizes[ahead], out=gone)
        np.minimum(gone, count, out=gone)
        count -= gone
        struck = gone > 0
        np.minimum((arrives & ~struck) * addition_sizes[ahead], question.capacity - count, out=come)
        count += come
        removal_age = np.where(struck, 1, np.minimum(removal_age + 1, OLDEST))
        addition_age = np.where(come > 0, 1, np.minimum(addition_age + 1, OLDEST))
    return removed.T, added.T


def _sizes(possible: NDArray[np.bool_], law: Sizes, rng: np.random.Generator) -> Counts:
    """Sizes where an event can be, zeros elsewhere: most intervals need none."""
    sizes: Counts = np.zeros(possible.shape, dtype=np.int64)
    sizes[possible] = law.draw(int(possible.sum()), rng)
    return sizes
