"""Turns the facts of the moment into an answer. What cannot be told is left out, not the rest."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from parcae_api.metric import Metric
from parcae_operator.metrics import fleet_catalog as fleet
from parcae_operator.metrics.facts import FactSource, JobFacts
from parcae_operator.metrics.families import Families
from parcae_operator.metrics.job_catalog import JOB_METRICS
from parcae_operator.metrics.of_job import add_job

_log = logging.getLogger(__name__)

METRICS = (*JOB_METRICS, *fleet.FLEET_METRICS)
"""All that the operator tells."""


class OperatorCollector(Collector):
    """Asks a source anew at every scrape: a job that is deleted is in no answer any more.

    Args:
        source: Of facts.
        version: This program's.
    """

    def __init__(self, source: FactSource, version: str) -> None:
        self._source = source
        self._version = version
        self._told = ""
        """The error that was last written to the log."""

    def describe(self) -> Iterable[Family]:
        """Nothing: a registry would otherwise collect when it is told of this."""
        return ()

    def collect(self) -> Iterable[Family]:
        """The answer."""
        source, families = self._source, Families(METRICS)
        parts: list[Callable[[], None]] = [
            lambda: families.add(fleet.BUILD_INFO, (self._version,), 1),
            lambda: families.add(fleet.JOBS, (), source.num_jobs()),
            lambda: _add_up(families, fleet.BOARD_UP, source.board_up()),
            lambda: _add_up(families, fleet.PLANNER_UP, source.planner_up()),
            lambda: _add_up(families, fleet.API_SERVER_UP, source.api_server_up()),
            lambda: _add_nodes(families, source),
        ]
        looks: list[Callable[[], JobFacts | None]] = []
        parts.append(lambda: looks.extend(source.jobs()))
        failures = sum(not self._try(part) for part in parts)
        # A part for each: what is wrong with one job takes nothing from the others.
        failures += sum(not self._try(partial(_add_one, families, look)) for look in looks)
        families.add(fleet.SCRAPE_FAILURES, (), failures)
        return families

    def _try(self, part: Callable[[], None]) -> bool:
        try:
            part()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            if told != self._told:
                _log.exception("a part of the metrics cannot be told")
            self._told = told
            return False
        return True


def _add_one(families: Families, look: Callable[[], JobFacts | None]) -> None:
    facts = look()
    if facts is not None:
        add_job(families, facts, time.time())


def _add_up(families: Families, metric: Metric, is_up: bool | None) -> None:
    if is_up is not None:
        families.add(metric, (), is_up)


def _add_nodes(families: Families, source: FactSource) -> None:
    for group, count in source.nodes().items():
        labels = (group.zone, "true" if group.spot else "false", group.state)
        families.add(fleet.NODES, labels, count)
