"""What is read from nodes, pods and events: severities, signals, readings."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from parcae_api.membership import Notice
from parcae_operator.observation import PodPhase


class Cloud(StrEnum):
    """Who runs the instance."""

    AWS = "aws"
    GKE = "gke"
    AZURE = "azure"
    OTHER = "other"


class Severity(IntEnum):
    """How badly a node stands."""

    HEALTHY = 0
    SUSPECT = 1
    """Not ready or not reachable; most often that passes."""
    HINT = 2
    """May go, and may stay: reversible. Feeds the forecast."""
    DOOMED = 3
    """Goes: a notice."""
    GONE = 4
    """Nothing runs on it any more."""


class Place(StrEnum):
    """Where a signal was found."""

    TAINT = "taint"
    LABEL = "label"
    ANNOTATION = "annotation"
    CONDITION = "condition"
    CORDON = "cordon"
    DELETION = "deletion"
    EVENT = "event"
    AGENT = "agent"


@dataclass(frozen=True)
class Signal:
    """One sign that a node goes away, or may."""

    kind: Place
    severity: Severity
    source: str
    """The row of the tables that it matched, at most 64 characters."""
    seen_unix_s: float
    """When it was read."""
    deadline_unix_s: float | None = None
    """When the instance goes; of a hint: when it may. None where nothing tells."""
    latched: bool = False
    """Never taken back, even if the cluster no longer shows it."""
    ttl_s: float | None = None
    """Forgotten so long after it was first seen; None: as long as the cluster shows it."""
    detail: str = ""
    """For people."""


@dataclass(frozen=True, kw_only=True)
class NodeReading:
    """A Node object at one moment."""

    uid: str
    """The node's identity: names are used again. Empty where the object had none."""
    name: str
    read_unix_s: float
    provider_id: str = ""
    created_unix_s: float | None = None
    boot_id: str = ""
    """Changes when the machine restarts: everything that ran on it is then gone."""
    cloud: Cloud = Cloud.OTHER
    spot: bool = False
    ready: bool = False
    why_unusable: tuple[str, ...] = ()
    """What keeps new pods from starting here."""
    signals: tuple[Signal, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether a new worker could start on it."""
        return not self.why_unusable

    @property
    def severity(self) -> Severity:
        """As this object alone tells. What was seen before is the latch's."""
        return max((signal.severity for signal in self.signals), default=Severity.HEALTHY)


class Blame(StrEnum):
    """Whose fault a lost or stuck pod is."""

    INFRASTRUCTURE = "infrastructure"
    """Replace it; never counts as a failure of the job."""
    USER_CODE = "user code"
    """Counts towards the job's ``backoffLimit``."""
    CONFIGURATION = "configuration"
    """Trying again changes nothing until somebody corrects something."""


class Loss(StrEnum):
    """Why a pod is lost, is about to be, or does not start."""

    DELETED = "Deleted"
    EVICTED_BY_API = "EvictionByEvictionAPI"
    EVICTED_BY_TAINT = "DeletionByTaintManager"
    COLLECTED = "DeletionByPodGC"
    NODE_SHUTDOWN = "TerminationByKubelet"
    PREEMPTED_BY_SCHEDULER = "PreemptionByScheduler"
    """A pod of higher priority takes its place; the node stays."""
    DISRUPTED = "DisruptionTarget"
    """For a reason that this program does not know."""
    EVICTED_BY_KUBELET = "Evicted"
    NODE_LOST = "NodeLost"
    NODE_GONE = "NodeGone"
    NODE_REPLACED = "NodeReplaced"
    """Its node's name belongs to a younger node."""
    NOT_ADMITTED = "NotAdmitted"
    """The node had no room or no device for it, mostly right after a restart."""
    NEVER_STARTED = "NeverStarted"
    """Bound to a node that goes away before its container ran."""
    KILLED = "Killed"
    """By SIGKILL or SIGTERM from outside."""
    WORKER_LOST = "WorkerLost"
    """Its agent ended because its worker was killed."""
    UNKNOWN = "Unknown"
    """Failed without any word."""
    UNSCHEDULABLE = "Unschedulable"
    CRASHED = "Crashed"
    OUT_OF_MEMORY = "OOMKilled"
    OVER_ITS_LIMIT = "OverItsLimit"
    """Evicted because it wrote more than it may."""
    IMAGE_PULL = "ImagePull"
    CONTAINER_CONFIG = "ContainerConfig"
    NOT_CREATED = "ContainersNotCreated"
    """It has a node for long, and nothing of it was made there; nobody has said why."""
    OVER_TIME = "DeadlineExceeded"

    @property
    def blame(self) -> Blame:
        """Whose fault it is."""
        return _BLAMES.get(self, Blame.INFRASTRUCTURE)


_BLAMES = {
    Loss.CRASHED: Blame.USER_CODE,
    Loss.OUT_OF_MEMORY: Blame.USER_CODE,
    Loss.OVER_ITS_LIMIT: Blame.USER_CODE,
    Loss.IMAGE_PULL: Blame.CONFIGURATION,
    Loss.CONTAINER_CONFIG: Blame.CONFIGURATION,
    Loss.OVER_TIME: Blame.CONFIGURATION,
}


@dataclass(frozen=True, kw_only=True)
class PodReading:
    """A Pod object at one moment."""

    uid: str
    name: str
    node_name: str = ""
    phase: PodPhase = PodPhase.PENDING
    """GONE also where the object lives on but nothing of it does, or ever will."""
    succeeded: bool = False
    """Its process ended by itself with exit code 0."""
    loss: Loss | None = None
    """Why it is lost, or about to be while ``phase`` is not GONE."""
    held_up: Loss | None = None
    """Why it does not start, while it is pending."""
    deadline_unix_s: float | None = None
    """When the kubelet kills it: its grace is already in."""
    exit_code: int | None = None
    ended_unix_s: float | None = None
    """When its container ended."""
    restarts: int = 0
    """Its containers' restarts: a pod's UID is no identity of a process."""
    container_ids: tuple[str, ...] = field(default=())
    may_force_delete: bool = False
    """Nobody will ever confirm its end, so it may be deleted with no grace, by its UID."""
    detail: str = ""
    """For people."""

    @property
    def notice(self) -> Notice | None:
        """That it is being deleted, while it still runs."""
        if self.loss is None or self.phase is PodPhase.GONE or self.deadline_unix_s is None:
            return None
        return Notice(deadline_unix_s=self.deadline_unix_s, source=f"pod-{self.loss.value}")


def earliest(*notices: Notice | None) -> Notice | None:
    """Of several notices about one instance the one that leaves the least time."""
    known = [notice for notice in notices if notice is not None]
    return min(known, key=lambda notice: notice.deadline_unix_s, default=None)
