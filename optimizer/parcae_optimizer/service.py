"""The planner over HTTP: ``/v1/plan``, ``/v1/forecast``, ``/healthz``, ``/metrics``.

Stateless: all it knows comes with the request; what it keeps only saves time. The same request
gets the same answer. Requests are bounded by their contracts, and planned one after the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from parcae_api.errors import InputError
from parcae_api.job import printable, what_is_wrong
from parcae_api.log_context import HEADER, about, from_header
from parcae_api.planning import (
    ForecastRequest,
    ForecastSummary,
    PlanAnswer,
    Planner,
    PlanRequest,
)
from parcae_optimizer.liveput_planner import LiveputPlanner, forecast_of, summary_of
from parcae_optimizer.logged import LoggedPlanner
from parcae_optimizer.service_meter import ServiceMeter
from parcae_predictor import Predictor

MOST_BODY_BYTES = 4_000_000
MOST_PROBLEMS = 10
"""Of a wrong request, so many are told; the others are of the same kind, or can wait."""


def make_app(predictor: Predictor, planner: Planner | None = None) -> FastAPI:
    """The service.

    Args:
        predictor: Forecasts.
        planner: Plans; the liveput planner on the same predictor if none is given.
    """
    app = FastAPI(
        title="Parcae planner",
        description="Which layout trains the most samples under forecast preemptions.",
        version="1",
        docs_url="/docs",
        redoc_url=None,
    )
    plans = LoggedPlanner(planner or LiveputPlanner(predictor))
    meter, one_at_a_time = ServiceMeter(), threading.Lock()

    @app.post("/v1/plan", responses=_REFUSED)
    def plan(request: PlanRequest, http: Request) -> PlanAnswer:
        """The layout to run now, what it is expected to train, and why."""
        arrived_s = time.perf_counter()
        told = from_header(http.headers.get(HEADER))
        with one_at_a_time, meter.working("plan", arrived_s), about(**told):
            return plans.plan(request)

    @app.post("/v1/forecast", responses=_REFUSED)
    def forecast(request: ForecastRequest) -> ForecastSummary:
        """How many instances may be there, per coming interval."""
        arrived_s = time.perf_counter()
        with one_at_a_time, meter.working("forecast", arrived_s):
            return summary_of(request, forecast_of(request, predictor))

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        """Whether the service can answer."""
        return {"status": "ok"}

    @app.get("/metrics", response_class=Response)
    def metrics() -> Response:
        """For Prometheus."""
        return Response(meter.text(), media_type=CONTENT_TYPE_LATEST)

    @app.middleware("http")
    async def refuse_huge_bodies(request: Request, call_next: Any) -> Response:
        if "transfer-encoding" in request.headers:  # its length is known when it is too late
            return _refusal(411, ["body"], "the body's length is not told; send content-length")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > MOST_BODY_BYTES:
            return _refusal(
                413, ["body"], f"the body has {length} bytes; send at most {MOST_BODY_BYTES}"
            )
        answer: Response = await call_next(request)
        return answer

    @app.middleware("http")
    async def count(request: Request, call_next: Any) -> Response:
        status = 500
        try:
            answer: Response = await call_next(request)
            status = answer.status_code
        finally:
            meter.ended(request.url.path, status)
        return answer

    @app.exception_handler(InputError)
    async def refuse(request: Request, error: InputError) -> Response:
        return _refusal(422, ["body"], str(error))

    @app.exception_handler(RequestValidationError)
    async def refuse_fields(request: Request, error: RequestValidationError) -> Response:
        problems = [_problem(request, each) for each in error.errors()[:MOST_PROBLEMS]]
        return JSONResponse({"detail": problems}, 422)

    @app.exception_handler(400)
    async def refuse_what_is_no_json(request: Request, error: HTTPException) -> Response:
        return _refusal(
            400,
            ["body"],
            "cannot be read as JSON; send UTF-8, nest it less deep, and write shorter numbers",
        )

    return app


def _problem(request: Request, found: Mapping[str, Any]) -> dict[str, Any]:
    """What is wrong, without the value itself, which may be huge or beyond JSON."""
    where = [part if isinstance(part, int) else printable(part) for part in found["loc"]]
    why = what_is_wrong(found)
    kind = request.headers.get("content-type", "of no type")
    if found["type"] == "json_invalid":
        place, where = where[-1], ["body"]
        why = f"is no JSON at character {place}: {found['ctx']['error']}; correct it"
    elif where == ["body"] and found["type"] != "missing" and "json" not in kind.lower():
        why = f"is {printable(kind)}; send it as content-type application/json"
    return {"loc": where, "msg": why, "type": found["type"]}


_REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"description": "The body cannot be read as JSON."},
    411: {"description": "The body's length is not told."},
    413: {"description": "The body is too large."},
}


def _refusal(status: int, where: list[int | str], why: str) -> Response:
    return JSONResponse({"detail": [{"loc": where, "msg": why, "type": "input"}]}, status)
