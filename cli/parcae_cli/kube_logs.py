"""Reads what a job's programs have said from the API server: Events, and logs of pods.

What may not be read is left out, and said so: half a story is better than none.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from parcae_api.job import KIND
from parcae_cli.kube_jobs import JobReader, Object
from parcae_cli.log_story import (
    EVENT,
    OPERATOR,
    PLANNER,
    Line,
    printable,
    read_line,
    revision_in,
    story,
)
from parcae_operator.kube.errors import ClusterError, Forbidden, NotFound
from parcae_operator.kube.labels import JOB, JOB_UID

_PROGRAMS = (
    f"app.kubernetes.io/part-of=parcae,app.kubernetes.io/component in ({OPERATOR},{PLANNER})"
)
_COMPONENT = "app.kubernetes.io/component"
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
_BEFORE_S = 600.0
"""What led to a revision may have begun so long before its first Event."""
_LOST = re.compile(r"the instance of (?P<pod>\S+)-[0-9a-f]{8} on ")


@dataclass
class Found:
    """What could be read."""

    lines: list[Line] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """What could not, in sentences."""


class LogReader:
    """Reads what belongs to one job.

    Args:
        reader: The API server as the user reaches it.
        job: The ParcaeJob's object.
        system_namespace: Where operator and planner run; None: looked for.
        since_s: How far back, in seconds; None: as far as there is anything.
        revision: The only one that is asked for; None: all.
    """

    def __init__(
        self,
        reader: JobReader,
        job: Object,
        *,
        system_namespace: str | None = None,
        since_s: float | None = None,
        revision: int | None = None,
    ) -> None:
        self._reader = reader
        self._name = str(job["metadata"]["name"])
        self._uid = str(job["metadata"].get("uid", ""))
        self._system = system_namespace
        self._since_s = since_s
        self._revision = revision
        self._found = Found()

    def read(self) -> Found:
        """All of it.

        Raises:
            ClusterUnavailable: the API server does not answer.
        """
        self._try("its Events", self._events)
        self._shorten()
        pods = self._try("its agents", self._agents) or []
        for pod in pods:
            self._read_pod(pod, pod["metadata"]["name"], lambda line: True)
        for pod in self._try("operator and planner", self._programs) or []:
            program = str((pod["metadata"].get("labels") or {}).get(_COMPONENT, ""))
            self._read_pod(pod, program, self._is_of_this_job)
        self._name_the_gone({pod["metadata"]["name"] for pod in pods})
        return self._found

    def _try(self, what: str, read: Callable[[], list[Object]]) -> list[Object] | None:
        try:
            return read()
        except (Forbidden, NotFound) as error:
            self._found.left_out.append(f"{what}: {error}")
            return None

    def _agents(self) -> list[Object]:
        pods = self._reader.pods(self._reader.namespace, f"{JOB}={self._name}")
        labels = [(pod["metadata"].get("labels") or {}) for pod in pods]
        return [p for p, of in zip(pods, labels, strict=True) if of.get(JOB_UID) == self._uid]

    def _programs(self) -> list[Object]:
        """Operator and planner, wherever they are; else in the namespace of the docs."""
        if self._system is not None:
            found = self._reader.pods(self._system, _PROGRAMS)
        else:
            try:
                found = self._reader.pods(None, _PROGRAMS)
            except Forbidden:
                found = self._reader.pods("parcae", _PROGRAMS)
        if not found:
            where = f"in namespace {self._system}" if self._system else "in this cluster"
            raise NotFound(f"there are none {where}; --system-namespace says where they run")
        return found

    def _events(self) -> list[Object]:
        newest = 0.0 if self._since_s is None else time.time() - self._since_s
        for event in self._reader.events(KIND, self._name):
            line = _line_of(event)
            is_his = (event.get("involvedObject") or {}).get("uid") in (self._uid, None)
            if line is not None and is_his and line.at_unix_s >= newest:
                self._found.lines.append(line)
        return []

    def _shorten(self) -> None:
        """Where an Event tells when the revision began, nothing older is asked for."""
        times = [
            line.at_unix_s
            for line in self._found.lines
            if self._revision is not None and line.revision == self._revision
        ]
        if self._since_s is None and times:
            self._since_s = max(0.0, time.time() - min(times)) + _BEFORE_S

    def _read_pod(self, pod: Object, who: str, wanted: Callable[[Line], bool]) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        status = pod.get("status") or {}
        if status.get("phase") == "Pending":
            return  # nothing runs there that could have said anything
        container = _container(pod)
        try:
            text = self._reader.log(namespace, name, container, self._since_s)
        except ClusterError as error:
            self._found.left_out.append(f"{name}: {error}")
            return
        if _restarts(status, container):
            text = self._before(namespace, name, container) + text
        lines = (_line_with_time(each, who) for each in text.splitlines())
        self._found.lines += [line for line in lines if line is not None and wanted(line)]

    def _before(self, namespace: str, name: str, container: str) -> str:
        """What the container said before it was started again, as far as that is kept."""
        try:
            return self._reader.log(namespace, name, container, self._since_s, previous=True) + "\n"
        except ClusterError:
            return ""

    def _is_of_this_job(self, line: Line) -> bool:
        return (line.namespace, line.job) == (self._reader.namespace, self._name)

    def _name_the_gone(self, there: set[str]) -> None:
        """Pods take their logs with them: those that have gone since the story began."""
        lines = self._found.lines
        since_s = min((line.at_unix_s for line in story(lines, self._revision)), default=math.inf)
        events = [each for each in lines if each.who == EVENT and each.at_unix_s >= since_s]
        told = (_LOST.search(event.message) for event in events)
        gone = sorted({found["pod"] for found in told if found} - there)
        if gone:
            self._found.left_out.append(f"{', '.join(gone)}: gone, and their logs with them")


def _line_with_time(text: str, who: str) -> Line | None:
    """A line behind the time at which the kubelet took it.

    A line of JSON tells its own, which is sooner; one of text does so without its time zone.
    """
    stamp, _, rest = text.partition(" ")
    line = read_line(rest, who)
    if line is None or rest.startswith("{"):
        return line
    try:
        return replace(line, at_unix_s=datetime.fromisoformat(stamp).timestamp())
    except ValueError:
        return line


def _line_of(event: Object) -> Line | None:
    metadata = event.get("metadata") or {}
    at = event.get("eventTime") or event.get("lastTimestamp") or metadata.get("creationTimestamp")
    try:
        at_unix_s = datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        return None
    note = str(event.get("message") or "")
    return Line(
        at_unix_s=at_unix_s,
        who=EVENT,
        level="warning" if event.get("type") == "Warning" else "info",
        message=printable(f"{event.get('reason', '')}: {note}"),
        revision=revision_in(note),
    )


def _container(pod: Object) -> str:
    """The one that is Parcae's: the first, whatever stands beside it."""
    named = (pod["metadata"].get("annotations") or {}).get(_DEFAULT_CONTAINER)
    return str(named or pod["spec"]["containers"][0]["name"])


def _restarts(status: Object, container: str) -> int:
    statuses = status.get("containerStatuses") or []
    return sum(int(s.get("restartCount", 0)) for s in statuses if s.get("name") == container)
