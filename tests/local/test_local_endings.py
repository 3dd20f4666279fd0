"""However a run ends, its records are there and nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from crew import await_true
from local_site import Result, Site, agents_of

from parcae_api.errors import InputError, ParcaeError
from parcae_api.etcd import EtcdClient
from parcae_cli.etcd_server import EtcdServer
from parcae_cli.local import command as command_module
from parcae_cli.local import run as run_module
from parcae_cli.local.cloud import FakeCloud
from parcae_operator.loop import JobLoop

pytestmark = pytest.mark.processes

RECORDS = ("summary.json", "steps.csv", "timeline.png", "events.jsonl")


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def beside(*todo: Callable[[], object]) -> Iterator[None]:
    """Do these in turn on another thread; what they raise is raised here in the end."""
    with ThreadPoolExecutor(1) as executor:
        done = executor.submit(lambda: [each() for each in todo])
        yield
        done.result()


def has_records(result: Result) -> bool:
    return all((result.folder / name).stat().st_size > 0 for name in RECORDS)


def test_interrupted_while_it_loads(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = threading.Event()

    def load() -> None:
        ctrl_c()
        assert loaded.wait(60)

    monkeypatch.setattr(run_module, "warm_up", load)
    result = site.run(site.manifest())
    loaded.set()
    assert result.code == 130
    assert result.summary["outcome"] == "interrupted"
    assert result.summary["steps_committed"] == 0
    assert result.summary["bit_identical"] is None
    assert (result.folder / "timeline.png").exists()


def test_interrupted_while_too_few_are_there(site: Site) -> None:
    events = site.root / "run" / "events.jsonl"
    spec = {"instances": {"min": 2, "max": 4}}
    started = time.monotonic()
    with beside(
        lambda: await_true(
            lambda: events.exists() and "join" in events.read_text(), "one is there"
        ),
        ctrl_c,
    ):
        result = site.run(site.manifest(spec=spec), trace=site.trace("0 +1", duration_s=1000))
    assert time.monotonic() - started < 30
    assert result.code == 130
    assert result.summary["outcome"] == "interrupted"


def test_interrupted_during_the_check(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = command_module.verify

    def interrupted(*arguments: Any) -> object:
        ctrl_c()
        return verify(*arguments)

    monkeypatch.setattr(command_module, "verify", interrupted)
    result = site.run(site.manifest(steps=20), verify=True)
    assert result.code == 130
    assert result.summary["steps_committed"] == 20
    assert result.summary["bit_identical"] is None
    assert result.summary["model_sha256"]
    assert has_records(result)
    assert "not checked" in result.out


def test_a_second_ctrl_c_does_not_wait(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(JobLoop, "finish", lambda self, why: asked.set())  # and it never ends
    with beside(lambda: site.await_commits(5), ctrl_c, lambda: asked.wait(60), ctrl_c):
        result = site.run(site.manifest(steps=100_000))
    assert result.code == 130
    assert result.summary["model_sha256"] is None
    assert result.summary["samples_lost"] == 0
    assert has_records(result)


def test_the_recording_ends_in_a_pause(site: Site) -> None:
    trace = site.trace("0 +1 +2", "7 -1 -2", duration_s=9)
    spec = {"instances": {"min": 2, "max": 4}}
    result = site.run(site.manifest(steps=100_000, spec=spec), trace=trace, verify=True)
    # All had left, and nobody lives who knows: but their state was saved, and that is enough.
    assert result.code == 0, (result.out, result.err)
    assert "the recording is over, while training was paused" in result.summary["outcome"]
    assert result.summary["bit_identical"] is True


def test_the_recording_ends_in_a_pause_that_lost_a_layer(site: Site) -> None:
    trace = site.trace("0 +1 +2", "6 -2@0", duration_s=8)
    spec = {"pipeline": {"minStages": 2}, "checkpoint": {"everySteps": 100_000}}
    result = site.run(site.manifest(steps=100_000, spec=spec), trace=trace, verify=True)
    assert result.code == 1, (result.out, result.err)
    outcome = result.summary["outcome"]
    assert outcome.startswith("the recording is over, while training was paused: 1 worker is fewer")
    assert outcome.endswith("; the last holder of a layer was lost before it was saved")
    assert result.summary["model_sha256"] is None
    assert result.summary["bit_identical"] is None


def test_a_controller_that_cannot_go_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(100_000))
    turn = JobLoop._turn

    def fail_later(self: JobLoop) -> object:
        if next(calls) > 3 and self.status.step > 5:
            raise ParcaeError("etcd refused: permission denied")
        return turn(self)

    monkeypatch.setattr(JobLoop, "_turn", fail_later)
    with pytest.raises(ParcaeError, match="permission denied"):
        site.run(site.manifest(steps=100_000))
    summary = json.loads((site.root / "run" / "summary.json").read_text())
    assert summary["outcome"] == "ended by an error: etcd refused: permission denied"
    assert summary["steps_committed"] > 5
    assert (site.root / "run" / "timeline.png").exists()


def test_a_recording_that_cannot_be_played_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    clouds: list[FakeCloud] = []
    start = FakeCloud.start
    monkeypatch.setattr(FakeCloud, "start", lambda self: (clouds.append(self), start(self)))

    def fail() -> None:
        clouds[0].error = ZeroDivisionError("a mistake of ours")

    with (
        pytest.raises(ZeroDivisionError),
        beside(lambda: site.await_commits(5), fail),
    ):
        site.run(site.manifest(steps=100_000), trace=site.trace("0 +1 +2", duration_s=600))
    summary = json.loads((site.root / "run" / "summary.json").read_text())
    assert summary["outcome"] == "ended by an error: a mistake of ours"
    assert summary["model_sha256"], "training was ended in order"


def test_etcd_that_does_not_come_back(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "_FINISH_LIMIT_SECONDS", 0.5)
    monkeypatch.setattr(run_module, "EtcdClient", partial(EtcdClient, patience_s=1.0))

    def refuse(self: EtcdServer) -> None:
        raise InputError("etcd: no program found")

    monkeypatch.setattr(EtcdServer, "restart", refuse)
    trace = site.trace("0 +1 +2", duration_s=6)
    with beside(lambda: site.await_commits(5), kill_etcd):
        result = site.run(site.manifest(steps=100_000), trace=trace)
    assert result.code == 1
    assert "training goes on without" in result.out
    assert "could not be ended in time" in result.summary["outcome"]
    assert result.summary["samples_lost"] == 0
    assert has_records(result)


def kill_etcd() -> None:
    for process in psutil.Process().children(recursive=True):
        if process.name() == "etcd":
            process.kill()


def test_a_reader_that_goes_away_does_not_end_the_run(site: Site) -> None:
    manifest = site.manifest(steps=10)
    process = site.start("local", str(manifest), "--out", str(site.root / "run"))
    assert process.stdout is not None
    assert "tiny on up to 4 instances" in process.stdout.readline()  # out at once
    process.stdout.close()  # as `| head -1` does
    assert process.stderr is not None
    err = process.stderr.read()
    process.wait(120)
    assert "Traceback" not in err
    summary = json.loads((site.root / "run" / "summary.json").read_text())
    assert summary["steps_committed"] == 10
    assert summary["model_sha256"]


def test_a_sigterm_to_an_agent_is_a_notice(site: Site) -> None:
    with beside(lambda: site.await_commits(10), lambda: agents_of(psutil.Process())[0].terminate()):
        result = site.run(site.manifest(steps=40), verify=True)
    assert result.code == 0, (result.out, result.err)
    assert result.summary["preemptions"] == {"noticed": 1, "sudden": 0}
    assert result.summary["bit_identical"] is True
    assert result.summary["steps_replayed"] == 0


def test_records_that_cannot_be_written_are_named_and_the_others_are_there(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, **_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command_module, "draw_timeline", full)
    with pytest.raises(ParcaeError, match=r"run: timeline.png cannot be written: No space left"):
        site.run(site.manifest(steps=5))
    folder = site.root / "run"
    assert json.loads((folder / "summary.json").read_text())["steps_committed"] == 5
    assert (folder / "steps.csv").exists()
    assert not (folder / "timeline.png").exists()


def test_a_failure_is_among_the_events(site: Site) -> None:
    (site.root / "broken.py").write_text("raise KeyError('at import')\n")
    result = site.run(site.manifest("broken:gpt"))
    assert result.code == 1
    events = [json.loads(x) for x in (result.folder / "events.jsonl").read_text().splitlines()]
    failures = [event for event in events if event["type"] == "failure"]
    assert "KeyError" in failures[0]["message"]
    assert "broken.py" in failures[0]["traceback"]
    assert result.summary["outcome"].startswith("failed: ")
