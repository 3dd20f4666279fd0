"""Asking a metadata service: short, bounded, without proxies. What can go wrong has a name each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

from parcae_agent.notices.settings import NoticeSettings

_MOST_BYTES = 256 * 1024
_LONGEST_WAIT_S = 300.0
"""However long a busy service asks us to wait: a notice must not be missed for longer."""
_DEFAULT_WAIT_S = 10.0


class Unanswered(Exception):
    """No answer to this question now; ask again."""


class Busy(Unanswered):
    """The service wants to be left alone for a while."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"busy for {wait_s:g} s")
        self.wait_s = wait_s


class Denied(Exception):
    """The service does not answer this question, not to us."""


@dataclass(frozen=True)
class Answer:
    """What came back, whole."""

    status: int
    text: str
    headers: Mapping[str, str]


class Metadata:
    """Asks one metadata service."""

    def __init__(self, settings: NoticeSettings) -> None:
        self._timeout_s = settings.timeout_s
        # Link-local and plain HTTP: a proxy from the environment would be asked about itself.
        self._client = httpx.AsyncClient(
            base_url=settings.url, trust_env=False, verify=False, follow_redirects=False
        )

    async def ask(
        self,
        path: str,
        headers: Mapping[str, str],
        *,
        method: str = "GET",
        timeout_s: float | None = None,
    ) -> Answer:
        """Ask once, within a time for the whole exchange.

        Raises:
            Busy: 429 or 503.
            Unanswered: it is not there, too slow, cut off, too long, or an error of its own.
        """
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(limit_s):
                answer = await self._exchange(method, path, headers, limit_s)
        except TimeoutError as error:
            raise Unanswered(f"no answer within {limit_s:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unanswered(f"{type(error).__name__}: {error}") from error
        if answer.status in (429, 503):
            raise Busy(_wait_s(answer.headers.get("retry-after", "")))
        if answer.status >= 500:
            raise Unanswered(f"status {answer.status}")
        return answer

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], limit_s: float
    ) -> Answer:
        connect_s = min(limit_s, self._timeout_s)
        timeout = httpx.Timeout(limit_s, connect=connect_s)
        request = self._client.build_request(method, path, headers=dict(headers), timeout=timeout)
        response = await self._client.send(request, stream=True)
        try:
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise Unanswered(f"an answer of more than {_MOST_BYTES} bytes")
        finally:
            await response.aclose()
        return Answer(response.status_code, body.decode(errors="replace"), response.headers)


def _wait_s(retry_after: str) -> float:
    """What ``Retry-After`` says, in seconds or as a date, within reason."""
    try:
        wait_s = float(retry_after)
    except ValueError:
        try:
            wait_s = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            wait_s = _DEFAULT_WAIT_S
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S) if wait_s == wait_s else _DEFAULT_WAIT_S
