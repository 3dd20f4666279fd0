"""Azure's scheduled events. They go to all machines of a group: only those that name ours count.

Events are never acknowledged: that would start them at once, for all machines that they name.
"""

from __future__ import annotations

import json
import re
import time
from email.utils import parsedate_to_datetime

from parcae_agent.notices.asking import Denied, Metadata, Unanswered
from parcae_agent.notices.cloud import Question
from parcae_agent.notices.settings import NoticeSettings
from parcae_agent.notices.signs import Sign, planned

_HEADERS = {"Metadata": "true"}
_EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
_NAME = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
_FIRST_S = 150.0
"""The first question of a machine's life switches the service on, which takes up to two minutes."""
PREEMPT_LEAD_S = 30.0

_SCALE_SET = re.compile(r"/virtualMachineScaleSets/([^/]+)/virtualMachines/([^/]+)$", re.IGNORECASE)
_MACHINE = re.compile(r"/virtualMachines/([^/]+)$", re.IGNORECASE)


class Azure:
    """Preemption and planned events of this machine."""

    name = "azure"

    def __init__(self, metadata: Metadata, settings: NoticeSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._machine = machine_name(settings.provider_id)
        self._answered = False

    async def is_here(self) -> bool:
        """Whether the service knows this machine's name."""
        try:
            answer = await self._metadata.ask(_NAME, _HEADERS)
        except Unanswered:
            return False
        name = answer.text.strip()
        if answer.status != 200 or not name:
            return False
        self._machine = self._machine or name.lower()
        return True

    def questions(self) -> tuple[Question, ...]:
        """One."""
        return (Question("scheduledevents", self._scheduled, self._settings.poll_s, decides=True),)

    async def _scheduled(self) -> tuple[Sign, ...]:
        timeout_s = None if self._answered else _FIRST_S
        answer = await self._metadata.ask(_EVENTS, _HEADERS, timeout_s=timeout_s)
        if answer.status != 200:
            raise Denied(f"status {answer.status}")
        self._answered = True
        return scheduled(answer.text, self._machine, time.time())


def machine_name(provider_id: str) -> str:
    """A machine's name among an event's resources, in lower case; empty where it does not say."""
    if (found := _SCALE_SET.search(provider_id)) is not None:
        return f"{found[1]}_{found[2]}".lower()
    found = _MACHINE.search(provider_id)
    return found[1].lower() if found is not None else ""


def scheduled(text: str, machine: str, now_unix_s: float) -> tuple[Sign, ...]:
    """What is planned for one machine.

    Raises:
        Unanswered: the answer is not what it should be.
    """
    try:
        events = json.loads(text)["Events"]
        mine = [event for event in events if _names(event, machine)]
        return tuple(_sign(event, now_unix_s) for event in mine)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unanswered(f"no list of events: {text[:80]}") from error


def _names(event: dict[str, object], machine: str) -> bool:
    resources = event.get("Resources")
    names = resources if isinstance(resources, list) else []
    return machine in [str(name).lower() for name in names]


def _sign(event: dict[str, object], now_unix_s: float) -> Sign:
    kind = str(event.get("EventType", "event"))
    source = f"azure-{kind.lower()}"[:64]
    due_s = _date_s(event.get("NotBefore"))
    if event.get("EventStatus") == "Started":  # the time is blank then
        due_s = now_unix_s
    if kind in ("Preempt", "Terminate"):
        return Sign(source, certain=True, deadline_unix_s=due_s, lead_s=PREEMPT_LEAD_S)
    if kind == "Freeze" or due_s is None:  # a pause of seconds
        return Sign(source, certain=False, deadline_unix_s=due_s)
    return planned(source, due_s, now_unix_s)


def _date_s(value: object) -> float | None:
    try:
        return parsedate_to_datetime(str(value)).timestamp()
    except (ValueError, OverflowError):
        return None
