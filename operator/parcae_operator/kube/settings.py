"""The operator's settings, from its environment; checked once, at the start."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator

from parcae_api.errors import InputError
from parcae_api.job import explain
from parcae_api.log_lines import LogFormat
from parcae_api.model import Contract
from parcae_operator.kube.network_policy import NetworkRules

PREFIX = "PARCAE_"
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Port = Annotated[int, Field(ge=0, le=65_535)]


class OperatorSettings(Contract):
    """``PARCAE_<NAME>`` of each field, in capitals."""

    board: Annotated[str, Field(min_length=1)]
    """Endpoints of etcd, separated by commas, as the operator reaches them."""
    agent_board: str = ""
    """The same as agents reach them; empty: as the operator does."""
    board_access: Path | None = None
    """A folder with the board's ca.crt, and root's user and password (see ``board_access``);
    without it the board is open to whoever reaches it."""
    planner: str = ""
    """URL of the planner service; empty: plans are reactive."""
    namespace: str = ""
    """Jobs of this namespace only; empty: of all."""
    identity: str = Field(default_factory=socket.gethostname)
    """This operator's name, for people: its pod."""
    resync_seconds: Seconds = 30.0
    """Between two complete lists of pods and jobs: watches are hints."""
    node_resync_seconds: Seconds = 120.0
    """Between two complete lists of nodes."""
    liveness_port: Port = 8080
    metrics_port: Port = 8081
    """Where Prometheus asks, at /metrics; 0: nowhere."""
    log_format: LogFormat = LogFormat.TEXT
    """``text`` for people, ``json`` for what collects logs."""
    grace_seconds: Annotated[int, Field(ge=1, le=3600)] = 30
    """terminationGracePeriodSeconds of agent pods whose template has none."""

    network_policy: NetworkRules | None = None
    """What each job's NetworkPolicy allows besides the job's own pods, as JSON; without it none is
    made, and one made before is removed."""

    @field_validator("network_policy", mode="before")
    @classmethod
    def _reads_json(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError as error:
            raise ValueError(f"is no JSON ({error}); give lists ingress and egress") from error

    @field_validator("board", "agent_board")
    @classmethod
    def _has_endpoints(cls, value: str) -> str:
        if value and not _split(value):
            raise ValueError(f"'{value}' names no endpoint; give at least one, like host:2379")
        return value

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Of the board."""
        return _split(self.board)

    @property
    def agent_endpoints(self) -> tuple[str, ...]:
        """Of the board, for agents."""
        return _split(self.agent_board or self.board)


def from_environment(environ: Mapping[str, str] = os.environ) -> OperatorSettings:
    """Read them.

    Raises:
        InputError: one is missing or wrong; the message names the variable.
    """
    known = OperatorSettings.model_fields
    # A chart writes an empty value where its user gives none.
    given = {name: text for name in known if (text := environ.get(PREFIX + name.upper()))}
    try:
        return OperatorSettings.model_validate(given)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0]).upper()
        raise InputError(f"{PREFIX}{name}: {explain(error).partition(': ')[2]}") from error


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
