"""The board's keys: which there are for a job, and what each holds.

::

    /parcae/<namespace>/<job>/ job                     ParcaeJob
                               agents/<incarnation>    Membership
                               plan                    Plan
                               epochs/<revision>       Rendezvous
                               progress                Progress
                               profile                 Profile
                               events/<id>             one of events.AnyEvent
                               failures/<worker>       events.Failed
                               history                 History
                               leader                  Leader
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import ValidationError

from parcae_api.errors import BoardError
from parcae_api.events import AnyEvent, Failed, parse_event
from parcae_api.history import History
from parcae_api.job import ParcaeJob, explain
from parcae_api.leader import Leader
from parcae_api.membership import Membership
from parcae_api.model import Contract
from parcae_api.plan import Plan, Rendezvous
from parcae_api.profile import Profile
from parcae_api.progress import Progress

M_co = TypeVar("M_co", bound=Contract, covariant=True)

ROOT = "/parcae/"


class KeyKind(StrEnum):
    """The first part of a key below its job."""

    JOB = "job"
    AGENT = "agents"
    PLAN = "plan"
    EPOCH = "epochs"
    PROGRESS = "progress"
    PROFILE = "profile"
    EVENT = "events"
    FAILURE = "failures"
    HISTORY = "history"
    LEADER = "leader"


class Slot(Generic[M_co]):
    """One kind of key with the type of its value.

    Args:
        kind: The kind.
        parse: Reads a value.
        named: Whether there are many, told apart by a name.
        name_has_slash: Whether that name may have several parts.
    """

    def __init__(
        self,
        kind: KeyKind,
        parse: Callable[[bytes], M_co],
        *,
        named: bool = False,
        name_has_slash: bool = False,
    ) -> None:
        self.kind = kind
        self._parse = parse
        self.named = named
        self._name_has_slash = name_has_slash

    def accepts(self, name: str) -> bool:
        """Whether there may be a key of this kind with this name."""
        if not self.named:
            return not name
        return bool(name) and (self._name_has_slash or "/" not in name)

    def read(self, key: str, value: bytes) -> M_co:
        """Parse the value of a key.

        Raises:
            BoardError: it is none of ours, or of another version; names the key.
        """
        try:
            return self._parse(value)
        except ValidationError as error:
            raise BoardError(f"{key}: cannot be read: {explain(error)}") from error


JOB = Slot(KeyKind.JOB, ParcaeJob.read)
AGENTS = Slot(KeyKind.AGENT, Membership.read, named=True)
PLAN = Slot(KeyKind.PLAN, Plan.read)
EPOCHS = Slot(KeyKind.EPOCH, Rendezvous.read, named=True)
PROGRESS = Slot(KeyKind.PROGRESS, Progress.read)
PROFILE = Slot(KeyKind.PROFILE, Profile.read)
EVENTS: Slot[AnyEvent] = Slot(KeyKind.EVENT, parse_event, named=True)
FAILURES = Slot(KeyKind.FAILURE, Failed.read, named=True, name_has_slash=True)
HISTORY = Slot(KeyKind.HISTORY, History.read)
LEADER = Slot(KeyKind.LEADER, Leader.read)

_ALL: tuple[Slot[Contract], ...] = (
    JOB,
    AGENTS,
    PLAN,
    EPOCHS,
    PROGRESS,
    PROFILE,
    EVENTS,
    FAILURES,
    HISTORY,
    LEADER,
)
_BY_KIND: dict[str, Slot[Contract]] = {slot.kind.value: slot for slot in _ALL}


def find_slot(path: str) -> tuple[Slot[Contract], str] | None:
    """Slot and name of a key, given as its path below the job; None for a key of no kind."""
    kind, _, name = path.partition("/")
    slot = _BY_KIND.get(kind)
    return (slot, name) if slot is not None and slot.accepts(name) else None
