"""Answers Prometheus from a registry."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry

from parcae_api.scrape_server import ScrapeServer
from parcae_operator.metrics.text import write_text


class MetricsServer(ScrapeServer):
    """Serves a registry at ``/metrics``; see ``ScrapeServer``."""

    def __init__(self, registry: CollectorRegistry, port: int, host: str = "0.0.0.0") -> None:
        super().__init__(partial(write_text, registry), port, host)
