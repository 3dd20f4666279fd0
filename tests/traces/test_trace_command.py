"""``parcae trace``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="the command needs the local extra")

from typer.testing import CliRunner

from parcae_api.errors import InputError
from parcae_cli.trace import app
from parcae_traces import bundled_paths, find_trace, read_trace


def run(*args: object) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_list_names_every_bundled_trace_in_80_columns() -> None:
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for name in bundled_paths():
        assert any(line.startswith(f"{name} ") for line in lines)
    assert "…" not in result.stdout
    assert max(map(len, lines)) <= 80


def test_show_tells_source_and_figures() -> None:
    result = run("show", "p3", "--segment", "hadp", "--instances", 12, "--seed", 1)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "trace p3-hadp-12" in said
    assert "hours 5.5-6.5 of it; 12 of its 32 slots (seed 1)" in said
    assert "capacity 12 instances" in said


def test_show_draws(tmp_path: Path) -> None:
    target = tmp_path / "p.png"
    assert run("show", "p3-lasp", "--plot", target).exit_code == 0
    assert target.stat().st_size > 10_000


def test_convert_cuts_scales_and_names(tmp_path: Path) -> None:
    target = tmp_path / "demo.trace"
    options = ("--segment", "0.65-1.65", "--instances", 8, "--seed", 55)
    assert run("convert", "p3", target, *options).exit_code == 0
    assert read_trace(target).name == "demo"
    assert read_trace(target).lives == find_trace("p3-dense-8").lives


def test_convert_restates_a_foreign_file(tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("0,add,a\n60000,remove,a\n", encoding="utf-8")
    target = tmp_path / "out.trace"
    options = ("--name", "one", "--source", "one node, today", "--notice", 30)
    assert run("convert", rows, target, *options).exit_code == 0
    assert target.read_text(encoding="utf-8") == (
        "# parcae-trace 1\n# name: one\n# source: one node, today\n# capacity: 1\n"
        "# duration_s: 120\n# notice_s: 30\n0 +1\n60 -1\n"
    )


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("show", "p4"), "neither a file nor bundled"),
        (("show", "p3", "--segment", "noon"), "segment 'noon' is unknown"),
        (("show", "p3", "--instances", 99), "cannot scale p3 to 99 instances"),
        (("show", "p3", "--plot", "p.doc"), "let it end in .png"),
        (("convert", "p3", "x.trace", "--name", "a b"), "change --name"),
        (("convert", "p3", "x.trace", "--source", " "), "change --name, --source"),
    ],
)
def test_bad_input_is_left_to_the_main_command(
    args: tuple[object, ...],
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert isinstance(result.exception, InputError)
    assert complaint in str(result.exception)
    assert not list(tmp_path.iterdir())
