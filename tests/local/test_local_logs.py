"""A run's logs: one revision is followed through operator, planner and agents."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest
from crew import await_true
from local_site import Site, agents_of

from parcae_cli.main import main

pytestmark = pytest.mark.processes

_LINE = re.compile(r"(?:INFO|WARNING) (?P<logger>[\w.]+): .*\[.*\brevision=(?P<revision>\d+)\]$")
_PROGRAMS = {"parcae_operator.loop", "parcae_optimizer.logged", "parcae_agent.worker"}


def run_through_a_change(site: Site) -> tuple[Path, int]:
    """A run of two workers, one of which leaves: its folder, and the revision that formed then."""
    spec = {"instances": {"min": 1, "max": 2}}
    manifest = site.manifest(spec=spec, steps=1_000_000)
    folder = site.root / "run"
    command = site.start("local", str(manifest), "--out", str(folder))
    await_true(lambda: len(agents_of(psutil.Process(command.pid))) == 2, "two agents")
    site.await_commits(5)
    await_true(lambda: "of 1x2" in text_of(folder) or "of 2x1" in text_of(folder), "both train")
    before = len(formed(folder))
    os.kill(agents_of(psutil.Process(command.pid))[0].pid, signal.SIGTERM)
    await_true(lambda: len(formed(folder)) > before, "the other goes on")
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130, err
    return folder, formed(folder)[-1]


def formed(folder: Path) -> list[int]:
    """Revisions of the changes of plan that formed."""
    path = folder / "events.jsonl"
    told = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [event["revision"] for event in told if event["type"] == "migration"]


def text_of(folder: Path) -> str:
    return "\n".join(lines(folder))


def lines(folder: Path) -> Iterable[str]:
    for name in ("parcae.log", "agents.log"):
        path = folder / name
        yield from path.read_text().splitlines() if path.exists() else []


def test_every_program_names_the_revision(site: Site) -> None:
    folder, revision = run_through_a_change(site)
    tellers: dict[int, set[str]] = defaultdict(set)
    for line in lines(folder):
        if found := _LINE.search(line):
            tellers[int(found["revision"])].add(found["logger"])
    assert tellers[revision] >= _PROGRAMS


def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What ``parcae logs`` prints."""
    monkeypatch.setattr("sys.argv", ["parcae", "logs", *words])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert (caught.value.code or 0, err) == (0, "")
    return out


def test_the_story_of_a_change_is_told_from_the_runs_folder(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, revision = run_through_a_change(site)
    capsys.readouterr()
    out = told(capsys, monkeypatch, "--run", str(folder), "--revision", str(revision), "-o", "json")
    story = [json.loads(text) for text in out.splitlines()]
    assert {line.get("revision") for line in story} <= {None, *range(1, revision + 1)}
    at = {
        part: [k for k, line in enumerate(story) if words in line["message"]]
        for part, words in {
            "notice": "notice by sigterm",
            "asked": " for 1 workers, in ",
            "published": "plan published: 1x1 (notice)",
            "left": f"leaves revision {revision - 1} after step",
            "formed": "goes on from step",
            "told": f"revision {revision} trains from step",
        }.items()
    }
    order = [at[part][0] for part in ("notice", "asked", "published", "formed")]
    assert order == sorted(order)
    assert at["published"][0] < at["told"][0]
    assert len(at["left"]) == 2
    assert len({story[k]["who"] for k in at["left"]}) == 2
    text = told(capsys, monkeypatch, "--run", str(folder), "--revision", str(revision))
    assert len(text.splitlines()) == len(story) + 1


def test_as_json_every_line_is_an_object_with_what_it_is_about(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARCAE_LOG_FORMAT", "json")
    folder, revision = run_through_a_change(site)
    told = [json.loads(line) for line in lines(folder)]
    agents = [line for line in told if line["logger"].startswith("parcae_agent")]
    for line in agents:
        assert (line["namespace"], line["job"]) == ("default", "tiny")
        assert re.fullmatch(rf"{line['pod']}-\w+/0", line["worker"])
    assert len({line["worker"] for line in agents}) >= 2
    of_revision = [line for line in told if line.get("revision") == revision]
    assert {line["logger"] for line in of_revision} >= _PROGRAMS
    assert {(line["namespace"], line["job"]) for line in of_revision} == {("default", "tiny")}
