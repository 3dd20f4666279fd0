"""The run that Prometheus watches, once for all tests of this folder, and the table at the end.

``PARCAE_PICTURES=1`` also draws the dashboards into docs (``make e2e-observe PICTURES=1``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import Cluster
from tests.cluster.fixtures import cluster_needs
from tests.e2e.e2e_site import Site
from tests.preparation import TARGETS, build_images

from . import findings, monitors, pictures, questions, story
from .compare import STEP_S
from .findings import Answers, Finding
from .journal import Journal, Looks
from .prometheus import Prometheus
from .records import Records
from .scrapes import Scrape, scrapes, sizes
from .story import NOTICE_LEAD_S, Story

__all__ = ["cluster_needs"]

Object = dict[str, Any]

DOCS = questions.ROOT / "docs"
_observed: list[Observed] = []


@dataclass(frozen=True)
class Observed:
    """What the run left: every answer, every record, and how they compare."""

    story: Story
    records: Records
    answers: Answers
    findings: Sequence[Finding]
    scrapes: Sequence[Scrape]
    rules: Sequence[Object]
    fired: frozenset[str]
    """Alerts that fired at some time."""


@pytest.fixture(scope="package")
def observed(cluster_needs: None) -> Iterator[Observed]:
    """One node that stays and three on spot; all is over when the tests look at it."""
    folder = Path(tempfile.mkdtemp(prefix="parcae-observe-"))
    folder.chmod(0o755)
    (folder / "stage").mkdir()
    stage = story.stage(folder / "stage")
    built = dict(zip(TARGETS, build_images(), strict=True))
    try:
        name, archives = f"observe-{os.getpid()}", built.values()
        with Cluster.up(name, story.specs(), archives=archives) as cluster:
            cluster.apply(*monitors.kinds())
            prometheus = Prometheus(cluster, folder)
            try:
                found = _watch(cluster, prometheus, stage, built)
            finally:
                prometheus.close()
        _observed.append(found)
        if os.environ.get("PARCAE_PICTURES"):
            _draw(found)
        yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(
    cluster: Cluster, prometheus: Prometheus, stage: Path, built: Mapping[str, Path]
) -> Observed:
    began_s = time.monotonic()
    journal = Journal(cluster, (stage / "checkpoints", story.LAYERS), prometheus.see)
    told = Story(
        Site(cluster, stage),
        prometheus,
        built,
        say=lambda what: print(f"{time.monotonic() - began_s:6.1f} s  {what}"),
    )
    try:
        told.run(measure=lambda: sizes(cluster, prometheus))
    finally:
        journal.close()
    records = Records(
        looks=Looks(journal.looks),
        board=told.board,
        events=told.events,
        job=story.JOB,
        noticed=[(at_s, NOTICE_LEAD_S) for at_s in told.noticed],
        log=told.log,
        planner_log=told.planner_log,
        killed=told.killed,
    )
    end_s = float(int(told.ended_s))  # the last moment: what ended the run is seen by it
    count = int((end_s - told.began_s) // STEP_S) + 1
    moments = [end_s - STEP_S * n for n in reversed(range(count))]
    start_s = moments[0]
    answers = {
        question: prometheus.over_time(question.expr, start_s, end_s, STEP_S)
        for question in questions.every()
    }
    firing = prometheus.over_time('ALERTS{alertstate="firing"}', start_s, end_s + 2.0, 1.0)
    return Observed(
        story=told,
        records=records,
        answers=answers,
        findings=findings.find(answers, records, moments),
        scrapes=scrapes(prometheus, told.sizes, start_s, end_s),
        rules=prometheus.rules(),
        fired=frozenset(dict(series.labels)["alertname"] for series in firing),
    )


def _draw(observed: Observed) -> None:
    for page in questions.DASHBOARDS:
        told = observed.story
        span = pictures.Span(told.applied_s - STEP_S, told.rested_s, now_s=told.trained_s)
        pictures.draw(page, observed.answers, span, DOCS / f"{page}.png")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for observed in _observed:
        write = terminalreporter.write_line
        terminalreporter.section("what dashboards and alerts say, and the run's records")
        findings.table(observed.findings, write, observed.story.began_s)
        write("── firing at some time ──")
        write(f"  {', '.join(sorted(observed.fired))}")
        write("── scrapes ──")
        for each in observed.scrapes:
            write(
                f"  {each.program:<9} {each.median_ms:5.1f} ms in the median of {each.scrapes}, "
                f"{each.most_ms:5.1f} ms at most; {each.size_bytes / 1000:.1f} kB"
            )
