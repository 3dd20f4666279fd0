"""The operator's metrics: gathered from its parts when Prometheus asks, served on a port."""

from __future__ import annotations

import importlib.metadata
import logging
from collections import Counter
from collections.abc import Callable, Mapping

from parcae_operator.kube.jobs import Jobs
from parcae_operator.kube.pulse import Pulse
from parcae_operator.kube.services import Services
from parcae_operator.metrics.collector import OperatorCollector
from parcae_operator.metrics.facts import JobFacts, NodeGroup
from parcae_operator.metrics.server import MetricsServer
from parcae_operator.signals import Severity

_log = logging.getLogger(__name__)

_STATES = {
    Severity.HEALTHY: "healthy",
    Severity.SUSPECT: "suspect",
    Severity.HINT: "hinted",
    Severity.DOOMED: "leaving",
    Severity.GONE: "leaving",
}


class Facts:
    """See ``FactSource``. Nothing here calls anybody or waits for what may take long."""

    def __init__(self, services: Services, jobs: Jobs, pulse: Pulse) -> None:
        self._services = services
        self._jobs = jobs
        self._pulse = pulse

    def jobs(self) -> list[Callable[[], JobFacts | None]]:
        """See ``FactSource``."""
        return self._jobs.facts()

    def num_jobs(self) -> int:
        """See ``FactSource``."""
        return len(self._jobs)

    def nodes(self) -> Mapping[NodeGroup, int]:
        """See ``FactSource``."""
        return Counter(
            NodeGroup(node.zone, node.spot, _STATES[node.severity])
            for node in self._services.store.nodes()
        )

    def board_up(self) -> bool | None:
        """See ``FactSource``."""
        return self._pulse.board_up

    def planner_up(self) -> bool | None:
        """See ``FactSource``."""
        return self._pulse.planner_up

    def api_server_up(self) -> bool | None:
        """See ``FactSource``."""
        return self._services.api.answers


class Telling:
    """Answers Prometheus until it is closed."""

    def __init__(self, pulse: Pulse | None, server: MetricsServer | None) -> None:
        self._pulse = pulse
        self._server = server

    @classmethod
    def start(cls, services: Services, jobs: Jobs) -> Telling:
        """Begin, unless the settings say no. A port that is taken is no reason not to train."""
        port = services.settings.metrics_port
        if not port:
            return cls(None, None)
        return cls.on(port, services, jobs)

    @classmethod
    def on(cls, port: int, services: Services, jobs: Jobs) -> Telling:
        """Begin on this port; 0 takes a free one."""
        pulse = Pulse(services.board, services.planner)
        registry = services.meter.registry
        registry.register(OperatorCollector(Facts(services, jobs, pulse), _version()))
        try:
            server = MetricsServer(registry, port)
        except OSError as error:
            _log.error("there are no metrics: port %d cannot be had: %s", port, error)
            pulse.close()
            return cls(None, None)
        return cls(pulse, server)

    @property
    def port(self) -> int | None:
        """Where it answers; None where it does not."""
        return self._server.port if self._server is not None else None

    def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
        if self._pulse is not None:
            self._pulse.close()


def _version() -> str:
    try:
        return importlib.metadata.version("parcae-k8s")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
