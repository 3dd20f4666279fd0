"""Tells Prometheus from the agent's own process: a worker that hangs or dies takes nothing away."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from parcae_agent.metrics.answer import AgentFacts, Build, answer
from parcae_agent.metrics.page import Page
from parcae_api.scrape_server import ScrapeServer

_log = logging.getLogger(__name__)


class Telling:
    """Answers until it is closed.

    Args:
        page: The worker's.
        facts: What the supervisor knows; called from other threads, and may wait for nothing.
        port: To listen on; 0 takes a free one, None none at all.
        host: To listen on.
    """

    def __init__(
        self, page: Page, facts: Callable[[], AgentFacts], port: int | None, host: str
    ) -> None:
        self._page = page
        self._facts = facts
        self._build = Build(_version("parcae-k8s"), _version("torch"))
        self._server = None if port is None else self._serve(port, host)

    @property
    def port(self) -> int | None:
        """Where it answers; None where it does not."""
        return self._server.port if self._server is not None else None

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()

    def _serve(self, port: int, host: str) -> ScrapeServer | None:
        """A port that is taken is no reason not to train."""
        try:
            server = ScrapeServer(self._answer, port, host)
        except OSError as error:
            _log.warning(
                "there are no metrics: port %d cannot be had (%s); set PARCAE_METRICS_PORT to "
                "another, or to 0 for none",
                port,
                error.strerror or error,
            )
            return None
        _log.info("metrics at http://%s:%d/metrics", host, server.port)
        return server

    def _answer(self) -> bytes:
        return answer(self._facts(), self._page.read(), self._build, time.time())


def resident_bytes(pid: int) -> int | None:
    """Memory of a process that is in use; None where it has ended, or the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _version(package: str) -> str:
    """Read from its metadata: torch itself is not loaded here."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
