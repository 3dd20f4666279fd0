"""What the panels of the dashboard "Parcae fleet" should show, by the run's records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from . import chosen
from .compare import COUNTED, NOW, NUMBERS, PULSE, Between, Labels, Lag, Records, merge
from .expectation import Expectation
from .expected_job import (
    EVENTS,
    MODELLED,
    MOMENTARY,
    NONE,
    PHASES,
    SPEEDS,
    STATES,
    STATUS,
    Job,
    Query,
    holds,
    ready,
)
from .journal import JobKey, Look, Object
from .records import Records as Run
from .records import count, labels
from .story import NOTICE_SOURCE, ZONE

NODES = "nodes (API server)"
VERSION = "0.1.0"
SPOT_LABEL = "cloud.google.com/gke-spot"
NOTICE_TAINT = "aws-node-termination-handler/spot-itn"
NODE = Lag(behind_s=4.0, ahead_s=2.0)
CLEARS_S = 16.0
RESTING = ("Suspended", "Completed", "Failed")
_LEAD_BOUNDS_S = (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 300, 900)


def expectations(run: Run) -> Mapping[Query, Expectation]:
    """By panel and query."""
    fleet, job = Fleet(run), Job(run)
    found = {
        ("Jobs known", ""): fleet.of_look(lambda look: {NONE: len(look.jobs)}, "jobs (API server)"),
        ("Degraded jobs", ""): fleet.of_statuses(
            lambda all_: {NONE: sum(holds(s, "Degraded") for s in all_.values())}
        ),
        ("Metrics missing", ""): Expectation(
            lambda t: {NONE: float("metrics cannot be told" in run.log)}, "the operator's log"
        ),
        ("Version", "{{version}}"): Expectation(
            lambda t: {labels(version=VERSION): 1.0}, "the package's version"
        ),
        ("Time to plan", "p50"): fleet.bounded("the operator's clock only: within its buckets"),
        ("Time to plan", "p99"): fleet.bounded("the operator's clock only: within its buckets"),
        ("Questions to the planner", "{{outcome}}"): fleet.questions(),
        ("Inside the planner", "work p99"): fleet.bounded("the planner's clock only"),
        ("Inside the planner", "waiting p99"): fleet.bounded("the planner's clock only"),
        # The table.
        ("Jobs", "phase"): fleet.phases(job),
        ("Jobs", "throughput"): fleet.numbers("throughputSamplesPerSecond"),
        ("Jobs", "liveput"): fleet.numbers("liveputSamplesPerSecond"),
        ("Jobs", "ideal"): fleet.of_ours(job.ideal, others=0.0),
        ("Jobs", "training"): fleet.of_statuses(
            lambda all_: {of(k): s["instanceCounts"]["training"] for k, s in all_.items()}
        ),
        ("Jobs", "pending"): fleet.of_statuses(
            lambda all_: {of(k): s["instanceCounts"]["pending"] for k, s in all_.items()}
        ),
        ("Jobs", "noticed"): fleet.of_ours(
            lambda t: {NONE: count(run.lost_noticed, t)}, others=0.0, lag=COUNTED, source=EVENTS
        ),
        ("Jobs", "sudden"): fleet.of_ours(
            lambda t: {NONE: count(run.lost_suddenly, t)}, others=0.0, lag=COUNTED, source=EVENTS
        ),
        ("Jobs", "steps"): fleet.of_statuses(
            lambda all_: {of(k): job.steps(s) for k, s in all_.items()}, NUMBERS
        ),
        ("Jobs by phase", "{{phase}}"): fleet.by_phase(job),
        ("Throughput", "{{namespace}}"): fleet.of_statuses(
            lambda all_: _sums(
                (labels(namespace=ns), s["throughputSamplesPerSecond"])
                for (ns, _), s in all_.items()
            ),
            SPEEDS,
        ),
        ("Throughput of ideal", "{{namespace}}/{{job}}"): fleet.of_ours(job.share),
        # Capacity.
        ("Spot nodes by zone", "{{zone}}"): fleet.nodes("zone", of_spot=True),
        ("Nodes by kind", "spot {{spot}}"): fleet.nodes("spot"),
        ("Nodes by state", "{{state}}"): fleet.states(),
        ("Instances", "{{state}}"): fleet.of_statuses(
            lambda all_: {
                labels(state=state): sum(s["instanceCounts"][state] for s in all_.values())
                for state in STATES
                if all_
            }
        ),
        ("Ready against asked for", "ready"): fleet.of_statuses(
            lambda all_: {NONE: sum(map(ready, all_.values()))} if all_ else {}
        ),
        ("Ready against asked for", "min"): fleet.asked_for("min"),
        ("Ready against asked for", "max"): fleet.asked_for("max"),
        ("Preemptions per hour", "noticed {{noticed}}"): Expectation(
            fleet.preemptions_per_hour, EVENTS, Lag(COUNTED.behind_s, COUNTED.ahead_s, 0.05)
        ),
        # Notices.
        ("Notices by source", "{{source}}"): Expectation(
            fleet.notices_by_source, f"what was done, and {NODES}", COUNTED
        ),
        ("Notices by severity", "{{severity}}"): Expectation(
            fleet.notices_by_severity, f"what was done, and {NODES}", COUNTED
        ),
    }
    for title, legend, up in (
        ("Board", "board", lambda look: look.board_up),
        ("Planner", "planner", lambda look: look.planner_up),
        ("API server", "API server", lambda look: look.api_up),
    ):
        found[title, ""] = found["Reached by the operator", legend] = fleet.answers(up)
    for share, legend in ((0.1, "p10"), (0.5, "p50"), (0.9, "p90")):
        found["Lead of notices", legend] = fleet.lead(share)
    return found


class Fleet:
    """The records of all jobs and nodes."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def of_look(self, read: Callable[[Look], Records], source: str, lag: Lag = NOW) -> Expectation:
        def expect(at_s: float) -> Records | None:
            look = self.run.look(at_s)
            return None if look is None else read(look)

        return Expectation(expect, source, lag)

    def of_statuses(
        self, read: Callable[[dict[JobKey, Object]], Records], lag: Lag = NOW
    ) -> Expectation:
        """Of all jobs that the operator has written to."""

        def expect(look: Look) -> Records:
            return read({key: s for key, s in self.run.statuses(look).items() if s})

        return self.of_look(expect, STATUS, lag)

    def phases(self, job: Job) -> Expectation:
        """Each job's; the preempted one's is another for a moment while a plan forms."""

        def expect(at_s: float) -> Records | None:
            look = self.run.look(at_s)
            if look is None:
                return None
            told = {key: s for key, s in self.run.statuses(look).items() if s}
            found = {of(key, phase=s["phase"]): 1.0 for key, s in told.items()}
            if self.run.job not in told or not job.forms(at_s):
                return found
            moment = {of(self.run.job, phase=p): MOMENTARY for p in ("Migrating", "Training")}
            return merge([found, {**found, **moment}])

        return Expectation(expect, STATUS)

    def by_phase(self, job: Job) -> Expectation:
        """How many jobs are in each phase."""
        each = self.phases(job).expect

        def expect(at_s: float) -> Records | None:
            found = each(at_s)
            if not found:
                return found
            sums = {phase: [0.0, 0.0] for phase in PHASES}
            for key, value in found.items():
                sure = not isinstance(value, Between) or not value.optional
                sums[dict(key)["phase"]][0] += sure
                sums[dict(key)["phase"]][1] += 1.0
            return {labels(phase=p): Between(least, most) for p, (least, most) in sums.items()}

        return Expectation(expect, STATUS)

    def numbers(self, name: str) -> Expectation:
        return self.of_statuses(lambda all_: {of(k): s[name] for k, s in all_.items()}, SPEEDS)

    def of_ours(
        self,
        read: Callable[[float], Records | None],
        *,
        others: float | None = None,
        lag: Lag = MODELLED,
        source: str = STATUS,
    ) -> Expectation:
        """Of the job that is preempted; others have this value, or need not be there."""

        def expect(at_s: float) -> Records | None:
            look, ours = self.run.look(at_s), read(at_s)
            if look is None or ours is None:
                return None
            found: dict[Labels, float | Between] = {}
            for key, status in self.run.statuses(look).items():
                if not status:
                    continue
                if key == self.run.job:
                    found |= {of(key): value for value in ours.values()}
                elif others is not None:
                    found[of(key)] = Between(others, others, optional=True)
            return found

        return Expectation(expect, source, lag)

    def asked_for(self, bound: str) -> Expectation:
        def read(look: Look) -> Records:
            jobs = [
                job["spec"]["instances"][bound]
                for job in look.jobs.values()
                if (job.get("status") or {}).get("phase") not in RESTING
            ]
            return {NONE: sum(jobs)} if jobs else {}

        return self.of_look(read, "job specs (API server)")

    def answers(self, is_up: Callable[[Look], bool]) -> Expectation:
        """Whether a program answers: nobody's word but a probe's."""

        def expect(at_s: float) -> Records | None:
            look = self.run.looks.at(at_s)
            return {} if look is None else {NONE: float(is_up(look))}

        return Expectation(expect, "a probe of its health endpoint", PULSE)

    def bounded(self, note: str) -> Expectation:
        """A duration that nobody else measures."""
        return Expectation(lambda t: {NONE: Between(0.0, 10.0, optional=True)}, "none", note=note)

    def questions(self) -> Expectation:
        """As many as the planner says that it has answered; those of its last moment may lack."""

        def expect(at_s: float) -> Records | None:
            if self.run.look(at_s) is None:
                return None
            asked = count(self.run.questions, at_s, at_s - chosen.RATE_S)
            per_minute = 60 / chosen.RATE_S
            return {
                labels(outcome="answered"): Between(
                    0.85 * asked * per_minute, (1.15 * asked + 2) * per_minute, optional=True
                ),
                labels(outcome="refused"): Between(0.0, 0.0, optional=True),
                labels(outcome="failed"): Between(0.0, 0.0, optional=True),
            }

        return Expectation(expect, "the planner's log", COUNTED, "none refused, none failed")

    # Nodes.

    def nodes(self, label: str, *, of_spot: bool = False) -> Expectation:
        """Nodes counted by a label."""

        def read(look: Look) -> Records:
            read_ = [reading(node) for node in look.nodes]
            counts = Counter(n[label] for n in read_ if n["spot"] == "true" or not of_spot)
            return {labels(**{label: value}): n for value, n in counts.items()}

        return self.of_look(read, NODES, NODE)

    def states(self) -> Expectation:
        """Nodes by state: one that was suspect is healthy when ten seconds showed nothing else."""

        def read(look: Look) -> Records:
            before = self.run.looks.between(look.at_s - CLEARS_S, look.at_s)
            settled = {n["metadata"]["uid"] for n in before[0].nodes}
            troubled = {n["metadata"]["uid"] for b in before for n in b.nodes if _trouble(n)}
            sure, maybe = Counter[str](), Counter[str]()
            for node in look.nodes:
                uid, state = node["metadata"]["uid"], reading(node)["state"]
                if state == "healthy" and (uid in troubled or uid not in settled):
                    maybe.update(["healthy", "suspect"])  # it begins as not ready, too
                else:
                    sure[state] += 1
            return {
                labels(state=state): Between(
                    sure[state], sure[state] + maybe[state], not sure[state]
                )
                for state in sure.keys() | maybe.keys()
            }

        return self.of_look(read, NODES, NODE)

    def notices_by_source(self, at_s: float) -> Records | None:
        return self._notices(at_s, "source")

    def notices_by_severity(self, at_s: float) -> Records | None:
        return self._notices(at_s, "severity")

    def _notices(self, at_s: float, label: str) -> Records | None:
        if self.run.look(at_s) is None:
            return None
        given = count([when for when, _ in self.run.noticed], at_s)
        suspected = Counter(why for when, why, _ in self._suspected if when <= at_s)
        # One that was killed may have been silent for less than a look before it was taken away.
        seen = {name for _, why, name in self._suspected if why == "silent"}
        if missed := sum(when <= at_s and name not in seen for when, name in self.run.killed):
            suspected["silent"] += missed
        found: dict[Labels, float | Between] = {}
        if given:
            found[labels(**{label: NOTICE_SOURCE if label == "source" else "notice"})] = given
        # A node begins as not ready, for a moment that a look may miss.
        new = count(self._new_nodes, at_s)
        if new:
            suspected["not-ready"] = suspected["not-ready"] or 0
        if label == "source":
            found |= {labels(source=source): n for source, n in suspected.items()}
            # One that is known to go already does not get worse by falling silent.
            if silent := suspected["silent"]:
                found[labels(source="silent")] = Between(0.0, silent, optional=True)
            if new:
                key = labels(source="not-ready")
                found[key] = Between(suspected["not-ready"], new, optional=True)
        elif suspected:
            most = suspected.total() - suspected["not-ready"] + new
            least = suspected.total() - suspected["silent"]
            found[labels(severity="suspect")] = Between(least, most, optional=not least)
        return found

    @cached_property
    def _new_nodes(self) -> list[float]:
        """When nodes came that were not there before the operator."""
        looks = [look for look in self.run.looks.looks if look.operators]
        known, found = {n["metadata"]["uid"] for n in looks[0].nodes} if looks else set(), []
        for look in looks:
            new = {n["metadata"]["uid"] for n in look.nodes} - known
            found += [look.at_s] * len(new)
            known |= new
        return found

    @cached_property
    def _suspected(self) -> list[tuple[float, str, str]]:
        """When nodes stood worse than at the look before, why, and which."""
        found: list[tuple[float, str, str]] = []
        before: dict[str, str] = {}
        for look in self.run.looks.looks:
            if not look.api_up:
                continue
            now = {n["metadata"]["name"]: _trouble(n) for n in look.nodes}
            found += [
                (look.at_s, why, name) for name, why in now.items() if why and not before.get(name)
            ]
            before = now
        return found

    def preemptions_per_hour(self, at_s: float) -> Records | None:
        look = self.run.look(at_s)
        if look is None:
            return None
        if not any(self.run.statuses(look).values()):
            return {}
        lost = {"true": self.run.lost_noticed, "false": self.run.lost_suddenly}
        return {labels(noticed=flag): count(times, at_s) for flag, times in lost.items()}

    def lead(self, share: float) -> Expectation:
        """A quantile of what notices said, at the resolution of the histogram's buckets."""

        def expect(at_s: float) -> Records | None:
            leads = [lead for when, lead in self.run.noticed if when <= at_s]
            if not leads:
                return {}
            value = quantile_of_buckets(share, leads, _LEAD_BOUNDS_S)
            return {NONE: Between(value * 0.999, value * 1.001, optional=False)}

        return Expectation(expect, "what was done, by docs/notices.md", COUNTED)


def quantile_of_buckets(share: float, values: Iterable[float], bounds: Iterable[float]) -> float:
    """As ``histogram_quantile`` finds it: evenly spread inside the bucket that it falls into."""
    known = sorted(values)
    rank, below, floor = share * len(known), 0, 0.0
    for bound in bounds:
        inside = sum(floor < value <= bound for value in known)
        if inside and below + inside >= rank:
            return floor + (bound - floor) * (rank - below) / inside
        below, floor = below + inside, float(bound)
    return floor


def of(key: JobKey, **more: str) -> Labels:
    """Labels of a job's series."""
    return labels(namespace=key[0], job=key[1], **more)


def reading(node: Object) -> dict[str, str]:
    """What a Node object says of itself."""
    marks = node["metadata"].get("labels", {})
    taints = {taint["key"] for taint in node["spec"].get("taints", ())}
    state = "leaving" if NOTICE_TAINT in taints else "suspect" if _trouble(node) else "healthy"
    spot = "true" if marks.get(SPOT_LABEL) == "true" else "false"
    return {"zone": marks.get(ZONE, ""), "spot": spot, "state": state}


def _trouble(node: Object) -> str:
    """Why a node is suspect: its kubelet says that it is not ready, or says nothing."""
    ready_ = [c for c in node["status"].get("conditions", ()) if c["type"] == "Ready"]
    status = ready_[0]["status"] if ready_ else "Unknown"
    return {"True": "", "False": "not-ready"}.get(status, "silent")


def _sums(pairs: Iterable[tuple[Labels, float]]) -> Records:
    found: Counter[Labels] = Counter()
    for key, value in pairs:
        found[key] += value  # type: ignore[assignment]
    return dict(found)
