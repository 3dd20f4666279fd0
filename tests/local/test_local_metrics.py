"""Agents' metrics of a real run agree with what its workers wrote down themselves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psutil
import pytest
from crew import await_true
from local_site import Site, agents_of, worker_of
from tests.metrics.metric_facts import Told, read

pytestmark = pytest.mark.processes

_WHERE = re.compile(r" (?P<pod>\S+) INFO \S+: metrics at (?P<url>http://127\.0\.0\.1:\d+/metrics)")


def endpoints(folder: Path) -> dict[str, str]:
    """Where each agent said that it answers, by its pod."""
    log = folder / "agents.log"
    text = log.read_text() if log.exists() else ""
    return {found["pod"]: found["url"] for found in _WHERE.finditer(text)}


def scrape(url: str) -> Told:
    with urlopen(url, timeout=10) as reply:
        return Told(read(reply.read().decode()))


def commits(folder: Path, pod: str) -> int:
    """Steps that a pod's worker wrote down as committed by a step of its own."""
    [journal] = (folder / "ledger").glob(f"{pod}-*.jsonl")
    lines = journal.read_text().splitlines()
    return sum(json.loads(line)["kind"] == "commit" for line in lines)


def test_what_an_agent_tells_is_what_its_worker_wrote_down(site: Site) -> None:
    """Also while the worker has stopped, and the notice comes in the middle of that."""
    spec = {"instances": {"min": 2, "max": 2}, "pipeline": {"maxStages": 1}}
    manifest = site.manifest(spec=spec, steps=1_000_000)
    command = site.start("local", str(manifest), "--out", str(site.root / "run"), "--metrics")
    folder = site.root / "run"
    site.await_commits(5)
    await_true(lambda: len(endpoints(folder)) == 2, "both agents answer")
    where = endpoints(folder)
    for pod, url in where.items():
        await_true(
            lambda url=url: scrape(url)("agent_state", state="training") == 1, f"{pod} trains"
        )
    before = {pod: commits(folder, pod) for pod in where}
    told = {pod: scrape(url) for pod, url in where.items()}
    after = {pod: commits(folder, pod) for pod in where}
    for pod, tell in told.items():
        steps = tell("worker_steps_total", namespace="default", job="tiny")
        assert steps is not None
        assert before[pod] - 1 <= steps <= after[pod]
        assert tell("worker_step_seconds_count") == pytest.approx(steps, abs=1)
        assert tell("worker_samples_total") == pytest.approx(8 * steps, abs=8)  # half of a batch
        parts = tell.all("worker_step_part_seconds_total", "part")
        assert sum(parts.values()) == pytest.approx(tell("worker_step_seconds_sum"), rel=0.2)
        assert tell("worker_epochs_total", outcome="formed") >= 1
        assert tell("worker_layers") == 6
        assert tell("worker_memory_bytes", kind="host") > 50_000_000
        assert tell("agent_board_up") == 1
    assert {tell("worker_replica") for tell in told.values()} == {0, 1}
    revision = max(tell("worker_revision") or 0 for tell in told.values())
    # The same on both: what the vote has told all.
    assert len({tell("agent_plan_revision") for tell in told.values()}) == 1

    supervisors = {agent.pid: agent for agent in agents_of(psutil.Process(command.pid))}
    [pod] = [pod for pod, tell in told.items() if tell("worker_replica") == 1]
    supervisor = next(s for s in supervisors.values() if holds(s, where[pod]))
    worker = worker_of(supervisor)
    os.kill(worker.pid, signal.SIGSTOP)
    await_true(lambda: worker.status() == psutil.STATUS_STOPPED, "the worker is stopped")
    stopped = scrape(where[pod])  # from a process whose worker answers nobody
    assert stopped("worker_steps_total") in (commits(folder, pod) - 1, commits(folder, pod))
    os.kill(supervisor.pid, signal.SIGTERM)  # a notice, in the middle of that
    await_true(lambda: scrape(where[pod])("agent_notice") == 1, "the notice is told")
    left_s = scrape(where[pod])("agent_notice_deadline_seconds")
    assert left_s is not None
    assert 0 < left_s <= 30
    os.kill(worker.pid, signal.SIGCONT)
    await_true(lambda: not answers(where[pod]), "the agent that left answers no more")
    [stayed] = where.keys() - {pod}
    await_true(lambda: scrape(where[stayed])("worker_revision") > revision, "the other went on")
    tell = scrape(where[stayed])
    assert tell("worker_revision") == tell("agent_plan_revision")
    assert tell("worker_pause_seconds_count") == tell("worker_epochs_total", outcome="formed") - 1
    changes = [event for event in events(folder) if event["type"] == "migration"]
    pauses_s = sum(event["pause_seconds"] for event in changes)
    assert tell("worker_pause_seconds_count") == len(changes)
    assert tell("worker_pause_seconds_sum") == pytest.approx(pauses_s, rel=0.2)
    command.send_signal(signal.SIGINT)
    command.wait(60)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def holds(process: psutil.Process, url: str) -> bool:
    """Whether a process listens there."""
    port = int(url.rsplit(":", 1)[1].partition("/")[0])
    return any(c.laddr.port == port for c in process.net_connections() if c.status == "LISTEN")


def answers(url: str) -> bool:
    with contextlib.suppress(URLError, ConnectionError):
        scrape(url)
        return True
    return False


def test_without_being_asked_nobody_answers(site: Site) -> None:
    result = site.run(site.manifest(steps=10))
    assert result.code == 0, (result.out, result.err)
    assert endpoints(result.folder) == {}
