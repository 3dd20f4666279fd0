"""A local run's folder, as ``parcae logs --run`` reads it: whole, cut short, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_api.errors import InputError
from parcae_cli.main import main
from parcae_cli.run_logs import read_run

OPERATOR = "2030-03-17 17:46:40,123 INFO parcae_operator.loop: plan published [revision=2]\n"
AGENT = "2030-03-17 17:46:40,200 agent-1 INFO parcae_agent.worker: formed [revision=2]\n"
EVENT = (
    '{"at_s": 1.5, "time": "2030-03-17T17:46:41.000+00:00", "type": "join", '
    '"incarnation": "agent-1-01234567", "node": "spot-1"}\n'
)


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_logs_and_events_are_read(tmp_path: Path) -> None:
    folder = write(tmp_path, parcae_log=OPERATOR, agents_log=AGENT, events_jsonl=EVENT)
    found = {line.who: line for line in read_run(folder)}
    assert set(found) == {"operator", "agent-1", "event"}
    assert found["agent-1"].revision == 2
    assert found["event"].message == "spot-1 is ready"


def test_what_a_kill_has_cut_short_costs_one_line(tmp_path: Path) -> None:
    folder = write(tmp_path, agents_log=AGENT + AGENT[:-20], events_jsonl=EVENT + EVENT[:30])
    assert [line.who for line in read_run(folder)] == ["agent-1", "agent-1", "event"]


def test_events_of_a_run_by_an_earlier_version_are_left_out(tmp_path: Path) -> None:
    old = EVENT.replace('"time": "2030-03-17T17:46:41.000+00:00", ', "")
    assert [line.who for line in read_run(write(tmp_path, agents_log=AGENT, events_jsonl=old))] == [
        "agent-1"
    ]


@pytest.mark.parametrize("name", ["", "missing"])
def test_a_folder_of_no_run(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^--run: .* has no parcae\.log or agents\.log; name a"):
        read_run(tmp_path / name)


def test_a_revision_of_which_the_run_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, agents_log=AGENT)
    monkeypatch.setattr("sys.argv", ["parcae", "logs", "--run", str(tmp_path), "--revision", "9"])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (1, "")
    assert err == f"parcae: {tmp_path}: its logs tell nothing of revision 9\n"
