"""The command itself, and kill -9 from another shell."""

from __future__ import annotations

import json
import os
import signal

import psutil
import pytest
from crew import await_true
from local_site import Site, agents_of, worker_of

pytestmark = pytest.mark.processes

STEPS = 120


def start(site: Site, name: str = "run", *more: str, steps: int = STEPS) -> psutil.Process:
    """Four workers in two stages, started and well under way."""
    manifest = site.manifest(spec={"pipeline": {"minStages": 2}}, steps=steps)
    out = str(site.root / name)
    process = site.start("local", str(manifest), "--out", out, "--seed", "1", *more)
    site.await_commits(15, name)
    return psutil.Process(process.pid)


def finish(site: Site, *, code: int = 0) -> str:
    """Wait for the command; what it printed."""
    process = site.started[-1]
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, (out, err)
    return out


def test_worker_supervisor_and_etcd_are_killed(site: Site) -> None:
    command = start(site, "run", "--verify")
    worker_of(agents_of(command)[0]).kill()
    site.await_commits(40)
    agents_of(command)[-1].kill()
    site.await_commits(65)
    (etcd,) = (p for p in command.children(recursive=True) if p.name() == "etcd")
    etcd.kill()
    finish(site)
    summary = json.loads((site.root / "run" / "summary.json").read_text())
    assert summary["steps_committed"] == STEPS
    assert summary["samples_lost"] == summary["samples_repeated"] == 0
    assert summary["bit_identical"] is True
    assert summary["preemptions"]["sudden"] == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(site: Site, number: signal.Signals) -> None:
    command = start(site, steps=100_000)
    agents = agents_of(command)
    os.kill(command.pid, number)
    out = finish(site, code=130)
    assert "interrupted" in out
    folder = site.root / "run"
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["outcome"] == "interrupted"
    assert summary["samples_lost"] == summary["samples_repeated"] == 0
    assert summary["model_sha256"]
    for name in ("events.jsonl", "steps.csv", "timeline.png", "model.safetensors"):
        assert (folder / name).stat().st_size > 0, name
    assert not any(agent.is_running() for agent in agents)


def test_command_itself_is_killed(site: Site) -> None:
    command = start(site, steps=100_000)
    everything = command.children(recursive=True)
    assert len(everything) > 8
    command.kill()
    await_true(lambda: not any(is_there(p) for p in everything), "all has ended with it")


def is_there(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_two_runs_side_by_side(site: Site) -> None:
    start(site, "one", steps=40)
    start(site, "two", steps=40)
    for process in site.started:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, (out, err)
    digests = {
        json.loads((site.root / name / "summary.json").read_text())["state_sha256"]
        for name in ("one", "two")
    }
    assert len(digests) == 1
