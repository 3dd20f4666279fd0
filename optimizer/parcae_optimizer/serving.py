"""Serving plans from this process until it is told to stop."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Annotated

import uvicorn
from pydantic import Field, ValidationError

from parcae_api.errors import InputError
from parcae_api.job import explain
from parcae_api.log_lines import LogFormat, log_to_stderr
from parcae_api.model import Contract
from parcae_optimizer.service import make_app
from parcae_predictor import DEFAULT, predictor_of

_GRACE_S = 5
"""How long after SIGTERM answers may still go out."""
_KEEP_ALIVE_S = 30
"""How long a connection may be idle: longer than between two questions of an operator, 5 s."""


class ServiceSettings(Contract):
    """The planner service's."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """``PARCAE_LISTEN_HOST``: address to listen on."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """``PARCAE_LISTEN_PORT``: 0 takes a free one."""
    model: str = DEFAULT
    """``PARCAE_MODEL``: which forecast."""
    log_format: LogFormat = LogFormat.TEXT
    """``PARCAE_LOG_FORMAT``: ``text`` for people, ``json`` for what collects logs."""


_VARIABLES = {
    "host": "PARCAE_LISTEN_HOST",
    "port": "PARCAE_LISTEN_PORT",
    "model": "PARCAE_MODEL",
    "log_format": "PARCAE_LOG_FORMAT",
}


def from_environment(environ: Mapping[str, str] = os.environ) -> ServiceSettings:
    """Settings from the environment; an empty variable is as good as none.

    Raises:
        InputError: one is wrong; the message names the variable.
    """
    given = {field: environ[name] for field, name in _VARIABLES.items() if environ.get(name)}
    try:
        return ServiceSettings.model_validate(given)
    except ValidationError as error:
        name = _VARIABLES[str(error.errors()[0]["loc"][0])]
        raise InputError(f"{name}: {explain(error).partition(': ')[2]}") from error


def serve(settings: ServiceSettings) -> None:
    """Answer until SIGTERM or SIGINT.

    Raises:
        InputError: there is no such forecast, or nobody can listen at that address.
    """
    app = make_app(predictor_of(settings.model))
    _check_address(settings.host, settings.port)
    log_to_stderr(settings.log_format)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_level="info",
        log_config=None,  # its lines look like all others
        access_log=False,
        timeout_graceful_shutdown=_GRACE_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
    )


def _check_address(host: str, port: int) -> None:
    """The server itself would only log that it cannot listen."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, UnicodeError) as error:  # the latter of what can be no host's name
        why = getattr(error, "strerror", None) or "it is no name of a host"
        raise InputError(
            f"host {host}, port {port}: cannot be listened at: {why}; give others"
        ) from error
