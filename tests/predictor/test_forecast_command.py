"""``parcae forecast``, and its picture."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="the command needs the local extra")
pytest.importorskip("matplotlib", reason="pictures need the traces extra")

import numpy as np
from typer.testing import CliRunner

from parcae_api.errors import InputError
from parcae_cli.main import app
from parcae_predictor import Forecast, PersistencePredictor, predictor_of
from parcae_predictor.fan import Picture, draw_fan, figure_of
from parcae_traces import Series, find_trace, series_of


def run(*args: object) -> Any:
    return CliRunner().invoke(app, ["forecast", *(str(arg) for arg in args)])


@pytest.fixture
def seen() -> Series:
    return series_of(find_trace("p3")).window(0, 330)


def forecast_of(seen: Series) -> Forecast:
    from parcae_predictor import Question

    question = Question(seen, seen.available[-1], 32, num_paths=100)
    return predictor_of("hazard").forecast(question)


@pytest.mark.parametrize("verb", [(), ("show",)])
@pytest.mark.parametrize("time", ["5.5", "5.5h", "330m", "330 min", "19800s"])
def test_the_next_minutes_are_told_and_drawn(
    verb: tuple[str, ...], time: str, tmp_path: Path
) -> None:
    target = tmp_path / "fan.png"
    result = run(*verb, "p3", "--at", time, "--out", target)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "p3 at 5.50 h: 32 of 32 instances; model hazard, 400 paths"
    rows = [line.split() for line in lines if line.lstrip().startswith("+")]
    assert [row[0] for row in rows] == [f"+{minute}" for minute in range(1, 13)]
    assert [int(row[-1]) for row in rows] == [32] * 8 + [29, 29, 26, 26]
    assert target.read_bytes().startswith(b"\x89PNG")
    assert target.stat().st_size > 20_000


def test_options_may_come_before_the_trace(tmp_path: Path) -> None:
    result = run("--at", "1", "--model", "arima", "--horizon", 5, "p3", "--out", tmp_path / "a.svg")
    assert result.exit_code == 0, result.output
    assert "model arima" in result.stdout


@pytest.mark.parametrize("time", ["0", "11.3833", "683m"])
def test_both_ends_of_a_trace(time: str, tmp_path: Path) -> None:
    assert run("p3", "--at", time, "--out", tmp_path / "f.png").exit_code == 0


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("p4", "--at", 1), "trace 'p4' is neither a file nor bundled"),
        (("p3", "--at", "noon"), "--at 'noon' is no time; give hours like 5.5"),
        (("p3", "--at", "12"), "--at '12' is beyond p3, which lasts 11.38 hours"),
        (("p3", "--at", "1", "--model", "guess"), "model 'guess' is unknown"),
        (("p3", "--at", "1", "--horizon", 0), "horizon: 0 is out of range"),
        (("p3", "--at", "1", "--out", "fan.doc"), "let it end in .png"),
        (("evaluate", "p4"), "trace 'p4' is neither a file nor bundled"),
        (("evaluate", "p3", "--model", "guess"), "model 'guess' is unknown"),
        (
            (*("evaluate", "p3-lasp", "--model", "persistence", "--jobs", 1), "--csv", "no/s.csv"),
            "s.csv: cannot be written: No such file",
        ),
    ],
)
def test_bad_input_is_left_to_the_main_command(
    args: tuple[object, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert isinstance(result.exception, InputError)
    assert complaint in str(result.exception)
    assert not list(tmp_path.iterdir())


def test_scores_are_printed_for_each_trace_and_model() -> None:
    result = run(
        *("evaluate", "p3-hadp", "g4dn", "--model", "window", "--model", "hazard"),
        *("--every", 20, "--jobs", 1),
    )
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    rows = [line.split() for line in lines]
    assert rows[1][:2] == ["p3-hadp", "window"]
    assert rows[2][0] == "hazard"
    assert rows[3][:2] == ["g4dn", "window"]
    assert rows[5][:3] == ["geometric", "mean", "window"]
    assert max(map(len, lines)) <= 80
    assert "geometric mean: over p3-hadp, g4dn" in lines


def test_parts_and_calm_traces_are_not_in_the_mean(tmp_path: Path) -> None:
    calm = tmp_path / "calm.csv"
    calm.write_text("0,add,a\n3600000,add,b\n", encoding="utf-8")
    table = tmp_path / "scores.csv"
    options = ("--model", "persistence", "--every", 30, "--jobs", 1, "--csv", table)
    # Until its last minute nothing happens, and that minute is no origin's.
    result = run("evaluate", "p3", "p3-hadp", "g4dn", calm, *options)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "geometric mean: over p3, g4dn" in lines
    assert "not in it, as parts of these: p3-hadp" in lines
    assert "not in it, as nothing happens: calm" in lines
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["trace"] for row in rows] == ["p3", "p3-hadp", "g4dn", "calm"]
    assert {row["count_ratio"] for row in rows} == {"1.0"}


def test_two_traces_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "p3.csv"
    file.write_text("0,add,a\n3600000,add,b\n", encoding="utf-8")
    result = run("evaluate", "p3", file)
    assert "trace 'p3' is given twice; rename a file" in str(result.exception)


def test_without_a_verb_or_trace_there_is_help() -> None:
    assert "evaluate" in run("--help").stdout
    assert "evaluate" in run().output


def test_starting_the_command_loads_no_numpy() -> None:
    code = "import sys, parcae_cli.forecast\n"
    code += "assert not {'numpy', 'scipy', 'matplotlib', 'statsmodels'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_loads_no_statsmodels() -> None:
    code = "import sys, parcae_predictor\n"
    code += "assert not {'scipy', 'matplotlib', 'statsmodels', 'torch'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_fan_holds_what_was_seen_what_may_come_and_what_came(seen: Series) -> None:
    forecast = forecast_of(seen)
    came = series_of(find_trace("p3")).window(330, 342)
    above, below = figure_of(Picture("title", "subtitle", 32, seen, forecast, came)).axes
    drawn = [np.asarray(line.get_ydata()).tolist() for line in above.lines]
    assert [*seen.available[-24:], 32] in drawn
    assert [*came.available, came.available[-1]] in drawn
    mean = forecast.mean().tolist()
    assert [*mean, mean[-1]] in drawn
    losses = sum(hasattr(found, "get_segments") for found in above.collections)
    assert losses == sum(map(bool, (*seen.removed[-24:], *came.removed)))
    chances = [bar.get_height() for bar in below.patches[:12]]
    gone = np.cumsum(forecast.removed, axis=1) > 0
    assert chances == pytest.approx((100 * gone.mean(axis=0)).tolist())


def test_nothing_seen_and_nothing_known_can_be_drawn(tmp_path: Path) -> None:
    from parcae_predictor import Question

    nothing = Series(60.0, (), (), ())
    forecast = PersistencePredictor().forecast(Question(nothing, 0, 8))
    draw_fan(Picture("t", "s", 8, nothing, forecast, nothing), tmp_path / "f.pdf")
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")


def test_a_missing_folder_is_named(seen: Series, tmp_path: Path) -> None:
    picture = Picture("t", "s", 32, seen, forecast_of(seen), seen.window(0, 0))
    with pytest.raises(InputError, match="cannot be written: No such file"):
        draw_fan(picture, tmp_path / "no" / "f.png")
