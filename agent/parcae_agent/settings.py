"""What an agent and its workers are told at their start. Light: nothing here loads torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from parcae_agent.probe import no_probe
from parcae_api.errors import InputError
from parcae_api.job import JobSpec, explain
from parcae_api.metric import AGENT_METRICS_PORT
from parcae_api.model import Contract
from parcae_api.plan import WorkerId

MOST_PORT = 65_535


class ExitCode(IntEnum):
    """How an agent ends, for whoever started it."""

    DONE = 0
    """Its work is done, or its state is out."""
    WORKER_LOST = 43
    """Its worker was killed: a loss of infrastructure. Not 1, with which every Python program ends
    that is broken itself."""
    USER_CODE = 42
    """The user's code failed: never retried."""


class WorkerConfig(Contract):
    """One worker's."""

    worker: WorkerId
    spec: JobSpec
    address: str
    """This worker's own address, for its peers."""
    search_path: str | None
    """Where the user's module lies; None to import it from the image."""
    ledger: Path
    checkpoints: Path | None
    device: str = "cpu"
    """``cpu``, or ``cuda:<index>``."""
    log_fields: dict[str, str] = {}
    """What its lines in the log are about: namespace, job and pod."""
    page: int | None = None
    """Descriptor of the memory where its numbers go; None: nobody reads them."""
    probe: Annotated[Callable[[str, int], None], Field(exclude=True)] = no_probe
    """Where tests script failures; it does not travel as JSON."""

    @property
    def error_file(self) -> Path:
        """Where the worker leaves word of what ended it against its will."""
        return self.ledger / f"{self.worker.replace('/', '.')}.error.json"


class AgentConfig(Contract):
    """An agent's: one pod, one worker per device."""

    endpoints: Annotated[tuple[str, ...], Field(min_length=1)]
    """Of the board."""
    access: Path | None = None
    """A folder with what the board asks for (see ``board_access``); None: it asks for nothing."""
    namespace: str
    job: str
    spec: JobSpec
    pod: str
    node: str
    node_uid: str
    address: str
    grace_seconds: float = 30.0
    """How long after SIGTERM the pod is killed."""
    lease_seconds: float = 5.0
    """How long the board keeps a silent agent."""
    worker_timeout_seconds: float = 10.0
    """How long a worker may be silent before it counts as lost."""
    search_path: str | None = None
    ledger: Path
    checkpoints: Path | None = None
    device: str = "cpu"
    metrics_port: Annotated[int, Field(ge=0, le=MOST_PORT)] | None = None
    """Where Prometheus asks, at /metrics; 0: a free port, None: nowhere."""
    metrics_host: str = "0.0.0.0"
    probe: Annotated[Callable[[str, int], None], Field(exclude=True)] = no_probe
    """Where tests script failures; it does not travel as JSON."""


def from_environment(environ: Mapping[str, str] = os.environ) -> AgentConfig:
    """An agent's configuration from ``PARCAE_AGENT``, which the operator writes into the pod.

    Where the pod runs is not known when it is made; ``PARCAE_NODE_NAME`` and ``PARCAE_ADDRESS``
    tell. ``PARCAE_METRICS_PORT`` may be the user's.

    Raises:
        InputError: a variable is missing or damaged.
    """
    raw = environ.get("PARCAE_AGENT")
    if raw is None:
        raise InputError("PARCAE_AGENT: is not set; agents are started by the operator")
    try:
        config = AgentConfig.read(raw)
    except ValidationError as error:
        raise InputError(f"PARCAE_AGENT: {explain(error)}") from error
    placed = {"node": environ.get("PARCAE_NODE_NAME"), "address": environ.get("PARCAE_ADDRESS")}
    config = config.model_copy(update={name: value for name, value in placed.items() if value})
    config = config.model_copy(update={"metrics_port": metrics_port(environ)})
    if not config.address:
        raise InputError("PARCAE_ADDRESS: is not set; give the pod's IP address")
    return config


def metrics_port(environ: Mapping[str, str]) -> int | None:
    """Where Prometheus asks, from ``PARCAE_METRICS_PORT``; None: nowhere, which 0 stands for.

    Raises:
        InputError: it is no port.
    """
    given = environ.get("PARCAE_METRICS_PORT") or str(AGENT_METRICS_PORT)
    if not (given.isdecimal() and given.isascii()) or int(given[:9]) > MOST_PORT:
        raise InputError(
            f"PARCAE_METRICS_PORT: is {given!r:.40}; give a port up to {MOST_PORT}, or 0 for none"
        )
    return int(given) or None
