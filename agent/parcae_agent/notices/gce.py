"""Google's metadata server: it answers when something changes, so nothing is missed in between."""

from __future__ import annotations

import re

from parcae_agent.notices.asking import Answer, Denied, Metadata, Unanswered
from parcae_agent.notices.cloud import Question
from parcae_agent.notices.settings import NoticeSettings
from parcae_agent.notices.signs import Sign

_FLAVOR = {"Metadata-Flavor": "Google"}
_WORD = re.compile("[A-Z_]{1,40}")
_WAIT_S = 60
"""How long the server may hold an answer back."""
PREEMPTED_LEAD_S = 30.0


class Gce:
    """Preemption, and maintenance of the host."""

    name = "gce"

    def __init__(self, metadata: Metadata, settings: NoticeSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._etags: dict[str, str] = {}

    async def is_here(self) -> bool:
        """Whether the server says that it is Google's."""
        try:
            answer = await self._metadata.ask(_path("preempted"), _FLAVOR)
        except Unanswered:
            return False
        google = answer.headers.get("metadata-flavor") == "Google"
        return google and answer.status == 200 and answer.text.strip() in ("TRUE", "FALSE")

    def questions(self) -> tuple[Question, ...]:
        """Both are held open by the server."""
        every_s = self._settings.poll_s
        return (
            Question("preempted", self._preempted, every_s, decides=True),
            Question("maintenance-event", self._maintenance, every_s),
        )

    async def _preempted(self) -> tuple[Sign, ...]:
        text = await self._changed("preempted")
        if text not in ("TRUE", "FALSE"):
            raise Unanswered(f"preempted is neither TRUE nor FALSE: {text[:40]}")
        if text == "FALSE":
            return ()
        return (Sign("gce-preempted", certain=True, lead_s=PREEMPTED_LEAD_S),)

    async def _maintenance(self) -> tuple[Sign, ...]:
        text = await self._changed("maintenance-event")
        if text == "NONE" or not text:
            return ()
        if _WORD.fullmatch(text) is None:
            raise Unanswered(f"no maintenance event: {text[:40]}")
        kind = text.partition("_")[0].lower()  # TERMINATE_…, MIGRATE_ON_HOST_MAINTENANCE
        # Up to an hour ahead on machines with a GPU, without saying when; it may be called off.
        return (Sign(f"gce-maintenance-{kind}", certain=False),)

    async def _changed(self, key: str) -> str:
        """The value, once it is another than when it was asked for last, or after a while."""
        # Not kept where this fails: what can't hold an answer back is asked plainly next time.
        last = self._etags.pop(key, None)
        if last is None:
            answer = await self._metadata.ask(_path(key), _FLAVOR)
        else:
            query = f"?wait_for_change=true&last_etag={last}&timeout_sec={_WAIT_S}"
            limit_s = _WAIT_S + self._settings.timeout_s
            answer = await self._metadata.ask(_path(key) + query, _FLAVOR, timeout_s=limit_s)
        if answer.status != 200:
            raise Denied(f"status {answer.status}")
        self._remember(key, answer)
        return answer.text.strip()

    def _remember(self, key: str, answer: Answer) -> None:
        etag = answer.headers.get("etag", "")
        if etag.isalnum() and etag.isascii():
            self._etags[key] = etag


def _path(key: str) -> str:
    return f"/computeMetadata/v1/instance/{key}"
