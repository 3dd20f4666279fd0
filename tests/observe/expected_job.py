"""What the panels of the dashboard "Parcae job" should show, by the run's records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from parcae_api.events import Migration

from . import chosen
from .compare import COUNTED, NOW, NUMBERS, Between, Expect, Lag, Records, merge
from .expectation import Expectation
from .journal import JobKey, Object
from .records import Records as Run
from .records import count, labels, rises

Query = tuple[str, str]
"""A panel's title, and the query's legend or letter."""

STATES = ("training", "standby", "starting", "pending", "leaving")
PHASES = ("Pending", "Training", "Migrating", "Paused", "Suspended", "Completed", "Failed")
CONDITIONS = ("Ready", "Progressing", "Degraded", "Suspended", "Completed", "Failed")
KINDS = ("intra_stage", "inter_stage", "pipeline")
STATUS = "job status (API server)"
EVENTS = "events of the job (API server)"
BOARD = "migrations on the board (etcd)"
NONE = labels()

SPEEDS = replace(NUMBERS, relative=0.5)
"""A speed is another at every step, on two shared cores by a third, and is written down at every
fifth second: what lasted for less is in no status."""
FORESEEN = Lag(behind_s=16.0, ahead_s=8.0, relative=0.15)
"""Asked of the planner anew at each interval's end."""
MODELLED = replace(FORESEEN, relative=0.5)
"""By layers that are measured anew every two seconds, of which the board keeps the newest only."""
RATES = Lag(behind_s=8.0, ahead_s=3.0, relative=0.15)
"""Prometheus extrapolates to the ends of a window: here of 16 s, by up to a scrape each."""
PAUSE_WINDOW_S = 900
FORMS_S = 2.0
MOMENTARY = Between(1.0, 1.0, optional=True)
PER_MINUTE = Lag(behind_s=6.0, ahead_s=6.0, relative=0.15)


def expectations(run: Run) -> Mapping[Query, Expectation]:
    """By panel and query."""
    job = Job(run)
    steps = job.counter("step", "stepsCommitted")
    rate_s, rates = float(chosen.RATE_S), job.rates
    found = {
        ("Phase now", "{{phase}}"): job.passing(
            lambda s: {labels(phase=s["phase"]): 1.0},
            {labels(phase=phase): MOMENTARY for phase in ("Migrating", "Training")},
        ),
        ("Throughput of ideal", ""): Expectation(
            job.share, "job status; ideal: the planner's code, on the board's profile", MODELLED
        ),
        ("Layout now", "{{axis}}"): job.of_status(
            lambda s: {labels(axis=axis): layout(s)[axis] for axis in ("data", "pipeline")}
        ),
        ("Steps committed", ""): job.of_status(lambda s: {NONE: job.steps(s)}, NUMBERS),
        ("Preemptions so far", ""): job.counted(
            lambda t: count(run.lost_noticed, t) + count(run.lost_suddenly, t)
        ),
        ("Checkpoint age now", ""): job.checkpoint_age(),
        ("Liveput, throughput, ideal", "ideal"): Expectation(
            job.ideal, "the planner's code, on the board's profile and measured steps", MODELLED
        ),
        ("Liveput, throughput, ideal", "liveput"): job.number("liveputSamplesPerSecond"),
        ("Liveput, throughput, ideal", "throughput"): job.number("throughputSamplesPerSecond"),
        ("Cost of 1,000 samples", "cost"): Expectation(job.cost, STATUS, PER_MINUTE),
        ("Instances", "{{state}}"): job.of_status(
            lambda s: {labels(state=state): s["instanceCounts"][state] for state in STATES}
        ),
        ("Instances", "min"): job.of_spec("min"),
        ("Instances", "max"): job.of_spec("max"),
        ("Instances against their forecast", "came"): job.of_status(
            lambda s: {NONE: ready(s)},
        ),
        ("Forecast now", ""): Expectation(
            job.forecast_table, "the predictor's code, on the board's history", FORESEEN
        ),
        ("Last plans", "revision"): Expectation(
            lambda t: job.changed(t, lambda s: s["revision"]), STATUS
        ),
        ("Last plans", "replicas"): Expectation(
            lambda t: job.changed(t, lambda s: layout(s)["data"]), STATUS
        ),
        ("Last plans", "stages"): Expectation(
            lambda t: job.changed(t, lambda s: layout(s)["pipeline"]), STATUS
        ),
        ("Preemptions", "noticed"): job.counted(lambda t: count(run.lost_noticed, t)),
        ("Preemptions", "sudden"): job.counted(lambda t: count(run.lost_suddenly, t)),
        ("Migrations by kind", "{{kind}}"): job.migrations(lambda m: 1.0),
        ("State moved", "{{kind}}"): job.migrations(lambda m: float(m.bytes_moved)),
        ("Steps per minute", "committed"): Expectation(
            lambda t: rates(t, rate_s, steps, 60.0), STATUS, PER_MINUTE
        ),
        ("Steps per minute", "replayed"): Expectation(
            lambda t: job.replayed_per_minute(t), BOARD, RATES
        ),
        ("Pause of a migration", "{{kind}}"): Expectation(job.mean_pause, BOARD, RATES),
        ("Time in pauses", "{{kind}}"): Expectation(
            lambda t: job.of_migrations_per_s(t, lambda m: m.pause_seconds, PAUSE_WINDOW_S),
            BOARD,
            RATES,
        ),
        ("Phase", "{{phase}}"): job.passing(
            lambda s: {labels(phase=phase): float(s["phase"] == phase) for phase in PHASES},
            {labels(phase=phase): Between(0.0, 1.0) for phase in ("Migrating", "Training")},
        ),
        ("Conditions", "{{type}}"): job.passing(
            lambda s: {labels(type=type_): float(holds(s, type_)) for type_ in CONDITIONS},
            {labels(type=type_): Between(0.0, 1.0) for type_ in ("Ready", "Progressing")},
        ),
        ("Checkpoint age", "age"): job.checkpoint_age(),
        ("Plan changes", ""): Expectation(job.plan_changes, STATUS),
        ("Sudden preemptions", ""): Expectation(job.sudden_changes, EVENTS, COUNTED),
    }
    for axis, legend in (("data", "data replicas"), ("pipeline", "pipeline stages")):
        found["Layout", legend] = job.axis(axis)
    for quantile, legend in (("0.1", "10 %"), ("0.5", "median"), ("0.9", "90 %")):
        found["Instances against their forecast", f"forecast {legend}"] = Expectation(
            job.foreseen(quantile), "the predictor's code, on the board's history", FORESEEN
        )
    return found


class Job:
    """The preempted job's records, read for one moment."""

    def __init__(self, run: Run) -> None:
        self.run = run

    # Kinds of expectations.

    def of_status(self, read: Callable[[Object], Records], lag: Lag = NOW) -> Expectation:
        """Something that stands in the status."""
        return Expectation(self._status(read), STATUS, lag)

    def passing(self, read: Callable[[Object], Records], moment: Records) -> Expectation:
        """The same; near a new plan the phase is another for a moment, which no status need tell.

        Args:
            read: what the status says.
            moment: what may be told beside it while a plan forms.
        """
        expect = self._status(read)

        def either(at_s: float) -> Records | None:
            found = expect(at_s)
            if not found or not self.forms(at_s):
                return found
            return merge([found, {**found, **moment}])

        return Expectation(either, STATUS)

    def forms(self, at_s: float) -> bool:
        """Whether a plan was published a moment ago."""
        return any(0.0 <= at_s - planned <= FORMS_S for planned in self.run.times("Planned"))

    def number(self, name: str) -> Expectation:
        """A number of the status: it is told as it is, and written every five seconds."""
        return self.of_status(lambda s: {NONE: s[name]}, SPEEDS)

    def counted(self, read: Callable[[float], float]) -> Expectation:
        """Something that is counted while there is a job."""

        def expect(at_s: float) -> Records | None:
            status = self.run.status(at_s)
            if status is None:
                return None
            return {NONE: read(at_s)} if status else {}

        return Expectation(expect, EVENTS, COUNTED)

    def axis(self, name: str) -> Expectation:
        """One side of the layout."""
        return self.of_status(lambda s: {NONE: layout(s)[name]})

    def of_spec(self, name: str) -> Expectation:
        """A bound of the spec."""

        def expect(at_s: float) -> Records | None:
            look = self.run.look(at_s)
            if look is None:
                return None
            job = look.jobs.get(self.run.job)
            return {NONE: float(job["spec"]["instances"][name])} if job else {}

        return Expectation(expect, "job spec (API server)")

    def migrations(self, worth: Callable[..., float]) -> Expectation:
        """A sum over the migrations so far, by kind."""

        def expect(at_s: float) -> Records | None:
            if not self.run.status(at_s):
                return {} if self.run.look(at_s) else None
            done = [m for m in self.run.migrations if m.at_unix_s <= at_s]
            return {
                labels(kind=kind): sum(worth(m) for m in done if m.kind == kind) for kind in KINDS
            }

        return Expectation(expect, BOARD, COUNTED)

    def checkpoint_age(self) -> Expectation:
        """By the files on the disk."""

        def expect(at_s: float) -> Records | None:
            look, status = self.run.look(at_s), self.run.status(at_s)
            if look is None or status is None:
                return None
            if not status or look.checkpoint_s is None or not status["configuration"]:
                return {}
            age_s = at_s - look.checkpoint_s
            return {NONE: Between(age_s - 0.5, age_s + 0.5, optional=True)}

        return Expectation(
            expect,
            "files of the newest complete checkpoint",
            Lag(behind_s=14.0, ahead_s=3.0),
            "the first worker looks every five seconds, and anew after a change of plan",
        )

    # Moments.

    def share(self, at_s: float) -> Records | None:
        status, ideal = self.run.status(at_s), self.ideal(at_s)
        if status is None or ideal is None:
            return None
        bounds = ideal.get(NONE)
        if not status or bounds is None:
            return {}
        least, most = (bounds.least, bounds.most) if isinstance(bounds, Between) else (bounds,) * 2
        speed = status["throughputSamplesPerSecond"]
        if not most:
            return {}
        return {NONE: Between(speed / most, speed / (least or most), optional=True)}

    def ideal(self, at_s: float) -> Records | None:
        status, spec = self.run.status(at_s), self._spec(at_s)
        if status is None:
            return None
        if not status or not spec:
            return {}
        if holds(status, "Suspended") or status["instances"] < spec["instances"]["min"]:
            return {NONE: 0.0}
        if not self._was_measured(at_s):
            return {}
        ideal = self.run.ideal(at_s, spec, status["instances"])
        return {NONE: Between(ideal or 0.0, ideal or 0.0, optional=True)}

    def cost(self, at_s: float) -> Records | None:
        status = self.run.status(at_s)
        if status is None:
            return None
        looks = [look for look in self.run.looks.between(at_s - 900, at_s)]
        told = [s for look in looks if (s := look.jobs.get(self.run.job, {}).get("status"))]
        if len(told) < 2:
            return {}
        seen_s = at_s - next(
            look.at_s for look in looks if look.jobs.get(self.run.job, {}).get("status")
        )
        held = sum(
            sum(n for state, n in s["instanceCounts"].items() if state != "pending") for s in told
        )
        trained = told[-1]["samplesCommitted"] - told[0]["samplesCommitted"]
        if not trained or not held:
            return {}
        cost = 1000 * chosen.PRICE / 3600 * held / len(told) * seen_s / trained
        return {NONE: Between(cost * 0.9, cost * 1.1, optional=seen_s < 30)}

    def foreseen(self, quantile: str) -> Expect:
        """One quantile, one interval ago."""

        def expect(at_s: float) -> Records | None:
            found = self.forecast_table(at_s - chosen.HORIZON_S)
            if found is None:
                return None
            key = labels(horizon_seconds=str(chosen.HORIZON_S), quantile=quantile)
            return {NONE: found[key]} if key in found else {}

        return expect

    def forecast_table(self, at_s: float) -> Records | None:
        status, spec = self.run.status(at_s), self._spec(at_s)
        if status is None:
            return None
        if not status or not spec or holds(status, "Suspended") or not status["revision"]:
            return {}
        at_s = self._asked(at_s)
        asked = self.run.status(at_s) or status
        told = self.run.forecast(at_s, spec, asked["instances"])
        length = len(told.mean)
        return {
            labels(horizon_seconds=f"{point * told.interval_s:g}", quantile=quantile): Between(
                values[point - 1], values[point - 1], optional=True
            )
            for quantile, values in (("0.1", told.low), ("0.5", told.median), ("0.9", told.high))
            for point in (1, length // 4, length // 2, length)
        }

    def changed(self, at_s: float, read: Callable[[Object], float]) -> Records | None:
        """A number of a plan that was not the plan one step before."""
        now, before = self.run.status(at_s), self.run.status(at_s - chosen.INTERVAL_S)
        if now is None or before is None:
            return None
        if not now or not before or now["revision"] == before["revision"]:
            return {}
        namespace, name = self.run.job
        return {labels(namespace=namespace, job=name): float(read(now))}

    def rates(
        self, at_s: float, window_s: float, read: Callable[[Object], float], factor: float
    ) -> Records | None:
        """A counter of the status per second of a window."""
        now, before = self.run.status(at_s), self.run.status(at_s - window_s)
        if now is None or before is None:
            return None
        if not now:
            return {}
        risen = read(now) - (read(before) if before else 0.0)
        return {NONE: Between(factor * risen / window_s, factor * risen / window_s, not before)}

    def replayed_per_minute(self, at_s: float) -> Records | None:
        """Steps that changes of plan in a window threw away."""
        found = self.of_migrations_per_s(at_s, lambda m: 60.0 * m.steps_replayed, chosen.RATE_S)
        if not found:
            return found
        sums = [value for value in found.values() if isinstance(value, Between)]
        value = sum(each.least for each in sums)
        return {NONE: Between(value, value, optional=any(each.optional for each in sums))}

    def of_migrations_per_s(
        self, at_s: float, worth: Callable[[Migration], float], window_s: float
    ) -> Records | None:
        """What changes of plan cost per second of a window, by kind."""
        now, before = self.run.status(at_s), self.run.status(at_s - 2)
        if now is None or before is None:
            return None
        if not now:
            return {}
        new = [m for m in self.run.migrations if at_s - window_s < m.at_unix_s <= at_s]
        sums = {kind: sum(worth(m) for m in new if m.kind == kind) for kind in KINDS}
        return {labels(kind=k): _told(n / window_s, before) for k, n in sums.items()}

    def mean_pause(self, at_s: float) -> Records | None:
        """By kind, of the changes in a window."""
        if self.run.look(at_s) is None:
            return None
        new = [m for m in self.run.migrations if at_s - chosen.RATE_S < m.at_unix_s <= at_s]
        pauses = {k: [m.pause_seconds for m in new if m.kind == k] for k in KINDS}
        return {labels(kind=k): sum(p) / len(p) for k, p in pauses.items() if p}

    def plan_changes(self, at_s: float) -> Records | None:
        if self.run.look(at_s) is None:
            return None
        looks = self.run.looks.between(at_s - 60, at_s)
        changes = rises(looks, lambda look: self._revision(look.jobs))
        most = count(self.run.times("Planned"), at_s, at_s - 60)
        return {NONE: Between(min(1, changes), max(most, changes), changes == 0)} if most else {}

    def sudden_changes(self, at_s: float) -> Records | None:
        # Two that are lost at once are one change for a scrape.
        lost = count(self.run.lost_suddenly, at_s, at_s - 60)
        return {NONE: Between(1, lost)} if lost else {}

    # Parts.

    def steps(self, status: Object) -> float:
        """The furthest that was committed."""
        return float(max(status["step"], status["stepsCommitted"]))

    def counter(self, *names: str) -> Callable[[Object], float]:
        """The most of some numbers."""
        return lambda status: max(status.get(name, 0) for name in names)

    def _status(self, read: Callable[[Object], Records]) -> Expect:
        def expect(at_s: float) -> Records | None:
            status = self.run.status(at_s)
            if status is None:
                return None
            return read(status) if status else {}

        return expect

    def _spec(self, at_s: float) -> Object | None:
        look = self.run.look(at_s)
        job = look.jobs.get(self.run.job) if look else None
        return job["spec"] if job else None

    def _revision(self, jobs: Mapping[JobKey, Object]) -> int:
        return int(jobs.get(self.run.job, {}).get("status", {}).get("revision", 0))

    def _asked(self, at_s: float) -> float:
        """When the planner was last asked: not while too few are there to train."""
        for look in reversed(self.run.looks.between(0.0, at_s)):
            status = look.jobs.get(self.run.job, {}).get("status") or {}
            if status.get("configuration"):
                return look.at_s
        return at_s

    def _was_measured(self, at_s: float) -> bool:
        looks = self.run.looks.between(0.0, at_s)
        statuses = [look.jobs.get(self.run.job, {}).get("status") or {} for look in looks]
        return any(s.get("liveputSamplesPerSecond") for s in statuses)


def _told(value: float, before: Object) -> Between:
    """A rate that needs two scrapes in its window: optional where the window's start had no job."""
    return Between(value, value, optional=not before)


def layout(status: Object) -> dict[str, float]:
    """Replicas and stages; 0 while paused."""
    data, _, pipeline = status["configuration"].partition("x")
    return {"data": float(data or 0), "pipeline": float(pipeline or 0)}


def ready(status: Object) -> float:
    """Instances in the grid and beside it."""
    counts = status["instanceCounts"]
    return float(counts["training"] + counts["standby"])


def holds(status: Object, type_: str) -> bool:
    """Whether a condition is True."""
    return any(c["type"] == type_ and c["status"] == "True" for c in status.get("conditions", []))
