"""The planner's client: the ``Planner`` seam over HTTP."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
from pydantic import ValidationError

from parcae_api.errors import InputError, PlannerUnavailable
from parcae_api.log_context import HEADER, to_header
from parcae_api.model import Contract
from parcae_api.planning import ForecastRequest, ForecastSummary, PlanAnswer, PlanRequest

T = TypeVar("T", bound=Contract)

_TIMEOUT_S = 5.0
"""Training goes on meanwhile; after this the operator plans reactively on its own."""
_HEALTH_S = 2.0
_RETRIES = 1


class PlannerClient:
    """Asks a planner service. Thread-safe."""

    def __init__(self, url: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        """``url`` is the service's root, such as http://parcae-planner:8080."""
        self._url = url
        self._client = httpx.Client(
            base_url=_checked(url),
            timeout=timeout_s,
            transport=httpx.HTTPTransport(retries=_RETRIES),  # of connecting only
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def plan(self, request: PlanRequest) -> PlanAnswer:
        """See ``Planner.plan``.

        Raises:
            PlannerUnavailable: no answer within the time allowed, or a broken one.
            InputError: the service refuses the request.
        """
        return self._post("/v1/plan", request, PlanAnswer)

    def forecast(self, request: ForecastRequest) -> ForecastSummary:
        """What may come.

        Raises:
            PlannerUnavailable: no answer within the time allowed, or a broken one.
            InputError: the service refuses the request.
        """
        return self._post("/v1/forecast", request, ForecastSummary)

    def is_up(self, timeout_s: float = _HEALTH_S) -> bool:
        """Whether the service says that it can answer; asks it."""
        try:
            answer = self._send("GET", "/healthz", timeout=timeout_s)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    def _send(self, method: str, path: str, **words: Any) -> httpx.Response:
        """Once more where the connection broke: all questions may be asked twice.

        A connection that is kept may be closed by the server at the very moment of its next use.
        """
        try:
            return self._client.request(method, path, **words)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            return self._client.request(method, path, **words)

    def _post(self, path: str, request: Contract, kind: type[T]) -> T:
        try:
            answer = self._send("POST", path, content=request.to_json(), headers=_headers())
        except httpx.HTTPError as error:
            raise PlannerUnavailable(f"planner {self._url}: {error}") from error
        if answer.status_code in (413, 422):
            raise InputError(f"planner {self._url}: {_reason(answer)}")
        if answer.status_code != 200:
            raise PlannerUnavailable(f"planner {self._url}: answered {answer.status_code}")
        try:
            return kind.read(answer.content)
        except ValidationError as error:
            raise PlannerUnavailable(
                f"planner {self._url}: its answer is no {kind.__name__}; is it of our version?"
            ) from error


def _headers() -> dict[str, str]:
    """Of which job and revision the question is goes along: the service's log names them."""
    context = to_header()
    told = {HEADER: context} if context else {}
    return {"content-type": "application/json", **told}


def _checked(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise InputError(f"planner URL {url!r}: {error}; give http://host:port") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InputError(f"planner URL {url!r}: is none; give http://host:port")
    return parsed


def _reason(answer: httpx.Response) -> str:
    """The first problem that the service names: the field's path and what is wrong."""
    try:
        first: dict[str, Any] = answer.json()["detail"][0]
        where = ".".join(str(part) for part in first["loc"][1:])
        return f"{where}: {first['msg']}" if where else str(first["msg"])
    except (ValueError, KeyError, IndexError, TypeError):
        return f"answered {answer.status_code}"
