"""The model that a replay trains: a published profile, or one that workers recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from parcae_api.errors import InputError
from parcae_api.job import explain
from parcae_api.planning import MOST_WORKERS, PlanRequest
from parcae_api.profile import Profile
from parcae_optimizer.measured import MeasuredRules
from parcae_optimizer.rules import NOTHING, Grid, Rules
from parcae_simulator.live import LiveRules, OfLayouts
from parcae_simulator.profiles import ModelProfile, find_profile
from parcae_simulator.published import PublishedRules

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
"""A profile is named after its file, which may be called anything."""


class RuleSet(StrEnum):
    """What changes of layout cost the policies that plan."""

    PUBLISHED = "published"
    """Restarts, as in the Parcae artifact."""
    MEASURED = "measured"
    """Live migration, as this project does it."""


@dataclass(frozen=True)
class Model:
    """Speeds and rules of one model; exactly one of the two profiles is there."""

    name: str
    published: ModelProfile | None = None
    recorded: Profile | None = None
    sequence_tokens: int | None = None
    """Tokens of one sample, where they are known."""

    def rules(
        self,
        rule_set: RuleSet,
        capacity: int,
        *,
        sudden: bool = False,
        serial_store: bool = False,
    ) -> Rules:
        """Costs for up to ``capacity`` instances.

        Raises:
            InputError: a recorded profile under the published rules, which need figures that it
                does not have; or nothing fits on so many instances.
        """
        if self.recorded is not None:
            if rule_set is RuleSet.PUBLISHED:
                raise InputError(
                    f"model {self.name}: a recorded profile has no restart times, which the "
                    "published rules charge; give --rules measured"
                )
            request = PlanRequest(profile=self.recorded, num_workers=min(capacity, MOST_WORKERS))
            return OfLayouts(MeasuredRules.of(request, request.num_workers))
        assert self.published is not None
        if rule_set is RuleSet.PUBLISHED:
            return PublishedRules(self.published, capacity)
        return LiveRules(self.published, sudden=sudden, serial_store=serial_store)


def find_model(where: str) -> Model:
    """A bundled model by name, a profile file, or (.json) a profile that workers recorded.

    Raises:
        InputError: there is no such model or file, or the file is wrong.
    """
    path = Path(where)
    if path.suffix.lower() != ".json":
        profile = find_profile(where)
        return Model(profile.model, published=profile, sequence_tokens=profile.sequence_tokens)
    try:
        recorded = Profile.from_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InputError(f"{path}: {explain(error)}") from error
    return Model(_NOT_IN_NAMES.sub("-", path.stem), recorded=recorded)


def fastest(rules: Rules, instances: int) -> Grid:
    """The layout of highest speed; ties to the first; NOTHING where none trains."""
    best = max(rules.grids(instances), key=rules.speed, default=NOTHING)
    return best if rules.speed(best) > 0 else NOTHING
