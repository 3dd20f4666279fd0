"""Amazon's instance metadata service, version 2: every question carries a token."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

from parcae_agent.notices.asking import Answer, Denied, Metadata, Unanswered
from parcae_agent.notices.cloud import Question
from parcae_agent.notices.settings import NoticeSettings
from parcae_agent.notices.signs import Sign, planned

TOKEN_TTL_S = 21600
_TOKEN, _TTL = "X-aws-ec2-metadata-token", "X-aws-ec2-metadata-token-ttl-seconds"
_TERMINATED_LEAD_S = 120.0
"""An Auto Scaling hook's time is not told; it is at least that of an interruption, mostly."""


class Aws:
    """Spot interruptions, rebalance recommendations, Auto Scaling and planned events."""

    name = "aws"

    def __init__(self, metadata: Metadata, settings: NoticeSettings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._token = ""
        self._token_until_s = 0.0
        self._lock = asyncio.Lock()

    async def is_here(self) -> bool:
        """Whether a token is given out."""
        try:
            return bool(await self._fresh_token())
        except (Unanswered, Denied):
            return False

    def questions(self) -> tuple[Question, ...]:
        """Two that decide within minutes, and two about what may come."""
        fast, slow = self._settings.poll_s, self._settings.slow_poll_s
        return (
            Question("spot/instance-action", self._interruption, fast, decides=True),
            Question("autoscaling/target-lifecycle-state", self._lifecycle, fast),
            Question("events/recommendations/rebalance", self._rebalance, slow),
            Question("events/maintenance/scheduled", self._scheduled, slow),
        )

    async def _interruption(self) -> tuple[Sign, ...]:
        answer = await self._get("spot/instance-action")
        return interruption(answer.text) if answer.status == 200 else ()

    async def _lifecycle(self) -> tuple[Sign, ...]:
        answer = await self._get("autoscaling/target-lifecycle-state")
        if answer.status != 200 or answer.text.strip() != "Terminated":
            return ()
        return (Sign("aws-asg-terminated", certain=True, lead_s=_TERMINATED_LEAD_S),)

    async def _rebalance(self) -> tuple[Sign, ...]:
        answer = await self._get("events/recommendations/rebalance")
        return (Sign("aws-rebalance", certain=False),) if answer.status == 200 else ()

    async def _scheduled(self) -> tuple[Sign, ...]:
        answer = await self._get("events/maintenance/scheduled")
        return scheduled(answer.text, time.time()) if answer.status == 200 else ()

    async def _get(self, path: str) -> Answer:
        """An answer of status 200 or 404."""
        answer = await self._get_with_token(path)
        if answer.status == 401:  # the token has run out, or the service was restarted
            self._token = ""
            answer = await self._get_with_token(path)
        if answer.status not in (200, 404):
            raise Denied(f"status {answer.status}")
        return answer

    async def _get_with_token(self, path: str) -> Answer:
        token = await self._fresh_token()
        return await self._metadata.ask(f"/latest/meta-data/{path}", {_TOKEN: token})

    async def _fresh_token(self) -> str:
        async with self._lock:
            if not self._token or time.monotonic() >= self._token_until_s:
                await self._fetch_token()
            return self._token

    async def _fetch_token(self) -> None:
        answer = await self._metadata.ask(
            "/latest/api/token", {_TTL: str(TOKEN_TTL_S)}, method="PUT"
        )
        token = answer.text.strip()
        # It goes into a header: anything else than a word would be refused there.
        if answer.status != 200 or not token.isascii() or not token.isprintable() or not token:
            raise Denied(f"no token: status {answer.status}")
        try:
            ttl_s = float(answer.headers.get(_TTL.lower(), TOKEN_TTL_S))
        except ValueError:
            ttl_s = TOKEN_TTL_S
        self._token, self._token_until_s = token, time.monotonic() + ttl_s / 2


def interruption(text: str) -> tuple[Sign, ...]:
    """What ``spot/instance-action`` says.

    Raises:
        Unanswered: it is not what it should be.
    """
    found = _json(text)
    action = found.get("action") if isinstance(found, dict) else None
    if action not in ("terminate", "stop", "hibernate"):
        raise Unanswered(f"an instance action that is none: {text[:80]}")
    if action == "hibernate":  # begins at once
        return (Sign("aws-spot-hibernate", certain=True, lead_s=0.0),)
    due_s = _iso_s(found.get("time"))
    return (Sign(f"aws-spot-{action}", certain=True, deadline_unix_s=due_s, lead_s=120.0),)


def scheduled(text: str, now_unix_s: float) -> tuple[Sign, ...]:
    """What ``events/maintenance/scheduled`` says: stops, retirements and reboots."""
    found = _json(text)
    if not isinstance(found, list):
        raise Unanswered(f"scheduled events that are none: {text[:80]}")
    signs = []
    for event in found:
        if not isinstance(event, dict) or event.get("State") != "active":
            continue  # completed, or called off
        due_s = _date_s(event.get("NotBefore"))
        source = f"aws-{event.get('Code', 'event')}"[:64]
        if due_s is None:
            signs.append(Sign(source, certain=False))
        else:
            signs.append(planned(source, due_s, now_unix_s))
    return tuple(signs)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unanswered(f"no JSON: {text[:80]}") from error


def _iso_s(value: object) -> float | None:
    try:
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _date_s(value: object) -> float | None:
    try:
        moment = datetime.strptime(str(value), "%d %b %Y %H:%M:%S GMT")
        return moment.replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None
