"""The records of a run as the queries' expectations read them. Pure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from parcae_api.events import Migration, parse_event
from parcae_api.history import History
from parcae_api.job import Pipeline
from parcae_api.planning import ForecastRequest, ForecastSummary, PlanRequest
from parcae_api.profile import Profile
from parcae_optimizer.liveput_planner import LiveputPlanner, forecast_of, summary_of
from parcae_predictor import HazardPredictor

from .compare import Labels
from .journal import JobKey, Look, Looks

Object = dict[str, Any]
_ANSWERED = "parcae_optimizer.logged"
"""The logger by which the planner tells its answers, a line each."""


def labels(**found: str) -> Labels:
    """Of a series."""
    return frozenset(found.items())


@dataclass(frozen=True)
class Records:
    """Everything that is known of a run without asking for a metric.

    Args:
        looks: what the API server said, twice a second.
        board: what etcd held at the end, by the key below the job.
        events: Kubernetes events about the job.
        job: the job that was preempted.
        noticed: when nodes were given notice, and how long before their end.
        killed: when nodes were killed without one, and their names.
        log: the operator's.
        planner_log: the planners', as JSON.
    """

    looks: Looks
    board: Mapping[str, str]
    events: Sequence[Object]
    job: JobKey
    noticed: Sequence[tuple[float, float]]
    log: str
    planner_log: str = ""
    killed: Sequence[tuple[float, str]] = ()

    def look(self, at_s: float) -> Look | None:
        """The API server's word of a moment; None while it was away."""
        look = self.looks.at(at_s)
        return look if look is not None and look.api_up else None

    def status(self, at_s: float) -> Object | None:
        """The job's status; None while the API server was away, empty while there is no job."""
        look = self.look(at_s)
        if look is None:
            return None
        return dict(look.jobs.get(self.job, {}).get("status") or {})

    def statuses(self, look: Look) -> dict[JobKey, Object]:
        """Of all jobs."""
        return {key: job.get("status") or {} for key, job in look.jobs.items()}

    # What happened, by its time.

    @cached_property
    def migrations(self) -> list[Migration]:
        """Changes of plan that formed, as the workers wrote them on the board."""
        found = [parse_event(v) for key, v in self.board.items() if key.startswith("events/")]
        return sorted((e for e in found if isinstance(e, Migration)), key=lambda e: e.at_unix_s)

    def times(self, reason: str, of: Callable[[str], bool] = lambda note: True) -> list[float]:
        """When an event with a reason was told."""
        return [unix_s(e) for e in self.events if e["reason"] == reason and of(e["note"])]

    @cached_property
    def lost_noticed(self) -> list[float]:
        """When instances were lost that had a notice."""
        return self.times("InstanceLost", lambda note: "after a notice" in note)

    @cached_property
    def lost_suddenly(self) -> list[float]:
        """When instances were lost that had none."""
        return self.times("InstanceLost", lambda note: "after a notice" not in note)

    @cached_property
    def questions(self) -> list[float]:
        """When the planner had answered a question, by its own log."""
        lines = [json.loads(line) for line in self.planner_log.splitlines() if line[:1] == "{"]
        told = [line["time"] for line in lines if line["logger"] == _ANSWERED]
        return [datetime.fromisoformat(time).timestamp() for time in told]

    @property
    def warnings(self) -> list[str]:
        """Lines of the operator's log that are more than news."""
        lines = (line for line in self.log.splitlines() if line[:1] == "{")
        return [line for line in lines if json.loads(line)["level"] != "info"]

    # What the planner must have said.

    @cached_property
    def profile(self) -> Profile:
        """As the workers measured it."""
        return Profile.read(self.board["profile"])

    @cached_property
    def _history(self) -> History:
        return History.read(self.board["history"])

    def history(self, at_s: float) -> History:
        """As it was at a moment."""
        whole = self._history
        ended = [i for i in whole.intervals if i.start_unix_s + whole.interval_s <= at_s]
        return whole.model_copy(update={"intervals": tuple(ended)})

    def forecast(self, at_s: float, spec: Object, ready: int) -> ForecastSummary:
        """What the chart's predictor says of a history, asked here once more."""
        history = self.history(at_s)
        key = len(history.intervals), ready, spec["instances"]["max"]
        if key not in self._forecasts:
            request = ForecastRequest(
                num_workers=ready,
                capacity=max(spec["instances"]["max"], ready),
                history=history,
                horizon=spec["planning"]["horizon"],
            )
            self._forecasts[key] = summary_of(request, forecast_of(request, HazardPredictor()))
        return self._forecasts[key]

    def ideal(self, at_s: float, spec: Object, ready: int) -> float | None:
        """The fastest layout's speed for so many workers; None before layers were measured.

        The workers' measurements on the board are corrected by the steps that ran, from the
        throughput in the job's status.
        """
        steps = self._step_seconds(at_s)
        key = tuple(sorted(steps.items())), ready
        if key not in self._ideals:
            request = PlanRequest(
                profile=self.profile,
                num_workers=ready,
                pipeline=Pipeline.model_validate(spec["pipeline"]),
                history=self._history,
                step_seconds=steps,
            )
            planner = LiveputPlanner(HazardPredictor())
            self._ideals[key] = planner.plan(request).ideal_samples_per_second
        return self._ideals[key]

    def _step_seconds(self, at_s: float) -> dict[str, float]:
        """Mean seconds of a step by configuration, up to a moment, from the job's status."""
        found: dict[str, list[float]] = {}
        for look in self.looks.between(0.0, at_s):
            status = look.jobs.get(self.job, {}).get("status") or {}
            if speed := status.get("throughputSamplesPerSecond"):
                seconds = self.profile.global_batch_samples / speed
                found.setdefault(status["configuration"], []).append(seconds)
        return {name: float(f"{sum(all_) / len(all_):.2g}") for name, all_ in found.items()}

    @cached_property
    def _forecasts(self) -> dict[tuple[int, int, int], ForecastSummary]:
        return {}

    @cached_property
    def _ideals(self) -> dict[object, float | None]:
        return {}


def unix_s(event: Object) -> float:
    """When an event was told."""
    return datetime.fromisoformat(event["eventTime"]).timestamp()


def count(times: Sequence[float], until_s: float, since_s: float = 0.0) -> int:
    """How many of these lie in an interval."""
    return sum(since_s < at_s <= until_s for at_s in times)


def rises(looks: Sequence[Look], value: Callable[[Look], object]) -> int:
    """How often a value changed from one look to the next."""
    return sum(value(a) != value(b) for a, b in itertools.pairwise(looks))


def text(value: object) -> str:
    """For a table."""
    return json.dumps(value)
