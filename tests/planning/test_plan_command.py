"""``parcae plan`` and ``parcae planner serve``, as a user runs them."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from planner_server import serving
from planning_helpers import make_profile

from parcae_cli.main import main

Say = pytest.CaptureFixture[str]


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "profile.json"
    path.write_bytes(make_profile([0.1] * 6, state_bytes=10_000_000).to_json())
    return str(path)


def plan(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["parcae", "plan", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_layouts_are_compared(profile: str, monkeypatch: pytest.MonkeyPatch, capsys: Say) -> None:
    told = ["--profile", profile, "--instances", "6", "--trace", "p3", "--segment", "hadp"]
    assert plan(monkeypatch, *told) == 0
    out = capsys.readouterr().out
    rows = re.findall(r"^(\d+x\d+) +([\d.]+) +([\d.]+) +[\d.]+ s", out, re.MULTILINE)
    assert len(rows) == 10
    liveputs = [float(liveput) for _, liveput, _ in rows]
    assert liveputs == sorted(liveputs, reverse=True)
    assert "forecast (hazard)" in out
    assert f"{rows[0][0]} on 6 workers" in out


def test_the_forecast_reaches_as_far_as_asked(
    profile: str, monkeypatch: pytest.MonkeyPatch, capsys: Say
) -> None:
    assert plan(monkeypatch, "--profile", profile, "--instances", "6", "--horizon", "3") == 0
    assert "after 3 intervals of 60 s" in capsys.readouterr().out


def test_slow_models_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Say
) -> None:
    path = tmp_path / "slow.json"
    path.write_bytes(make_profile([20.0] * 4).to_json())
    assert plan(monkeypatch, "--profile", str(path), "--instances", "4") == 0
    out = capsys.readouterr().out
    speeds = re.findall(r"^\d+x\d+ +[\d.]+ +([\d.]+) ", out, re.MULTILINE)
    assert len(set(speeds)) == len(speeds)
    assert "on 4 workers: 0.2 samples/s" in out


def test_nothing_fits(profile: str, monkeypatch: pytest.MonkeyPatch, capsys: Say) -> None:
    assert plan(monkeypatch, "--profile", profile, "--instances", "1", "--min-stages", "2") == 1
    assert "1 worker is fewer than pipeline.minStages (2)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--instances", "-1"], "--instances: is -1; give a number from 1 to 1024"),
        (["--instances", "0"], "--instances: is 0; give a number from 1 to 1024"),
        (["--instances", "-1", "--max", "8"], "--instances: is -1; give a number from 0 to 1024"),
        (["--instances", "2000"], "--instances: is 2000; give a number from 1 to 1024"),
        (["--instances", "0", "--max", "0"], "--max: is 0; give a number from 1 to 1024"),
        (["--instances", "6", "--memory-gb", "1e300"], "--memory-gb: is 1e+300; give gigabytes"),
        (["--instances", "6", "--horizon", "0"], "--horizon: is 0; give a number from 1 to 60"),
        (["--instances", "6", "--horizon", "61"], "--horizon: is 61; give a number from 1 to 60"),
        (["--instances", "6", "--max", "3"], "--max: is 3; give a number from 6 to 1024"),
        (["--instances", "6", "--min-stages", "0"], "--min-stages: is 0; give"),
        (["--instances", "6", "--max-stages", "0"], "--max-stages: is 0; give a number from 1 to"),
        (["--instances", "6", "--max-stages", "600"], "--max-stages: is 600; give a number from 1"),
        (["--instances", "6", "--memory-gb", "nan"], "--memory-gb: is nan; give gigabytes above 0"),
        (["--instances", "6", "--memory-gb", "inf"], "--memory-gb: is inf; give gigabytes above 0"),
        (["--instances", "6", "--memory-gb", "-1"], "--memory-gb: is -1; give gigabytes above 0"),
        (["--instances", "6", "--trace", ""], "cannot be read"),
        (["--instances", "6", "--trace", "p3", "--segment", "11-12"], "ends at hour 12, but p3"),
        (["--instances", "6", "--segment", "hadp"], "--segment: needs a --trace to cut"),
        (["--instances", "6", "--trace", "nope"], "'nope' is neither a file nor bundled"),
        (["--instances", "6", "--model", "nope"], "model 'nope' is unknown; give one of"),
    ],
)
def test_bad_input_is_one_sentence(
    profile: str,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Say,
) -> None:
    assert plan(monkeypatch, "--profile", profile, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_file_that_is_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Say
) -> None:
    path = tmp_path / "wrong.json"
    assert plan(monkeypatch, "--profile", str(path), "--instances", "3") == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    path.write_text("x" * 5000)
    assert plan(monkeypatch, "--profile", str(path), "--instances", "3") == 2
    error = capsys.readouterr().err
    assert "Invalid JSON" in error
    assert len(error) < 400


def test_an_address_that_is_taken_or_none_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: Say
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for told, says in (
            (["--port", port], f"host 127.0.0.1, port {port}: cannot be listened at: Address al"),
            (["--host", "1.2.3.4.5", "--port", "0"], "host 1.2.3.4.5, port 0: cannot be"),
            (["--host", ""], "--host is empty; give an address"),
            (["--host", ".."], "host .., port 8080: cannot be listened at: it is no name of a"),
        ):
            monkeypatch.setattr(sys, "argv", ["parcae", "planner", "serve", *told])
            with pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code == 2
            error = capsys.readouterr().err
            assert says in error
            assert error.count("\n") == 1


@pytest.mark.processes
def test_the_service_answers_until_it_is_ended() -> None:
    serve = [sys.executable, "-m", "parcae_cli.main", "planner", "serve", "--port", "0"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = (re.search(r"running on (http://\S+)", line) for line in server.stderr)
            url = next(found[1] for found in said if found)
            assert httpx.get(f"{url}/healthz").status_code == 200
        finally:
            server.terminate()
        assert server.wait(10) in (0, -15)


def test_the_example_in_the_docs_is_answered() -> None:
    text = (Path(__file__).parents[2] / "docs" / "planner.md").read_text()
    found = re.search(r"-d '(\{.*?\})'", text, re.DOTALL)
    assert found
    with serving() as url:
        header = {"content-type": "application/json"}
        answer = httpx.post(f"{url}/v1/plan", content=found[1], headers=header)
    assert answer.status_code == 200
    assert answer.json()["layout"]["configuration"]["data"] >= 1
