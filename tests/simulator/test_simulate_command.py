"""``parcae simulate``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("typer", reason="the command needs the local extra")

from typer.testing import CliRunner

from parcae_api.errors import InputError
from parcae_api.profile import LayerProfile, Profile
from parcae_cli.main import app
from parcae_simulator.registry import NAMES


def run(*args: object) -> Any:
    return CliRunner().invoke(app, ["simulate", *(str(arg) for arg in args)])


def test_the_table_names_every_policy_in_full() -> None:
    result = run("--segment", "10.0-10.1", "--seeds", 1)
    assert result.exit_code == 0, result.output
    for name in NAMES:
        assert any(line.startswith(f"{name} ") for line in result.stdout.splitlines()), name
    assert "…" not in result.stdout


def test_the_csv_has_every_figure(tmp_path: Path) -> None:
    target = tmp_path / "figures.csv"
    chosen = ("--segment", "lasp", "--policies", "ideal,published,nochange")
    result = run(*chosen, "--csv", target, "--sequence-tokens", 100)
    assert result.exit_code == 0, result.output
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {"model", "trace", "segment", "policy", "timing", "samples"} <= rows[0].keys()
    ideal = next(row for row in rows if row["policy"] == "ideal")
    assert (ideal["model"], ideal["trace"], ideal["segment"]) == ("gpt-6.7b", "p3", "lasp")
    assert float(ideal["samples"]) == pytest.approx(28315, abs=0.5)
    assert float(ideal["tokens"]) == pytest.approx(2831500, abs=50)
    timings = {row["timing"] for row in rows if row["policy"] == "nochange"}
    assert timings == {"seen", "before"}
    published = [row for row in rows if row["policy"] == "published" and row["timing"] == "before"]
    assert float(published[0]["cost_per_1000_samples"]) == pytest.approx(0.493, abs=1e-3)


def test_of_all_policies_a_recorded_profile_leaves_out_those_that_it_cannot_tell_of(
    tmp_path: Path,
) -> None:
    layer = LayerProfile(
        name="one", param_bytes=10**8, state_bytes=3 * 10**8, activation_bytes=10**6, seconds=0.02
    )
    layers = tuple(layer.model_copy(update={"name": f"layer{n}"}) for n in range(4))
    profile = Profile(layers=layers, num_micro_batches=8, micro_batch_samples=4, total_steps=1000)
    path = tmp_path / "mine.json"
    path.write_bytes(profile.to_json())
    chosen = ("--rules", "measured", "--model", path, "--trace", "p3-dense-8")
    whole = run(*chosen, "--segment", "0.1-0.2", "--timing", "seen")
    assert whole.exit_code == 0, whole.output
    assert "left out: reactive, varuna," in whole.stderr
    assert "which the recorded profile mine does not have" in whole.stderr
    told = {line.split()[0] for line in whole.stdout.splitlines() if line}
    assert {"ideal", "parcae", "causal", "ondemand"} <= told
    assert not {"reactive", "varuna", "torchft"} & told
    refused = run(*chosen, "--policies", "ideal,varuna,reactive")
    assert isinstance(refused.exception, InputError)
    assert "policy varuna, reactive needs restart times" in str(refused.exception)
    assert not refused.stdout


def test_several_cells_are_summed_up_and_drawn(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "pictures"
    result = run(
        "--model", "vgg19", "--segment", "10.0-10.1,8.0-8.1,10.2-10.3",
        "--policies", "ideal,nochange,varuna", "--timing", "seen", "--store", "parallel",
        "--notices", "both", "--seeds", 1, "--cores", 1, "--plots", folder,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "varuna sudden parallel" in result.stdout
    drawn = sorted(folder.iterdir())
    assert len(drawn) == 7
    assert folder / "vgg19-shares.png" in drawn
    assert all(path.stat().st_size > 10_000 for path in drawn)


def test_any_trace_and_live_migration() -> None:
    result = run("--trace", "p3-dense-8", "--model", "bert", "--rules", "measured",
                 "--policies", "ideal,nochange", "--notices", "sudden")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "nochange sudden serial" in result.stdout


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--policies", "magic"), "policy 'magic' is unknown"),
        (("--policies", " , "), "is unknown"),
        (("--segment", "noon"), "segment 'noon' is unknown"),
        (("--segment", "11-12"), "ends at hour 12"),
        (("--segment", ","), "--segment is empty"),
        (("--model", "gpt-9"), "neither a profile file nor bundled"),
        (("--model", "bert,bert.yaml"), "neither a profile file nor bundled"),
        (("--trace", "nowhere"), "neither a file nor bundled"),
        (("--seeds", 0), "--seeds is 0"),
        (("--cores", -1), "--cores is -1"),
        (("--sequence-tokens", 0), "--sequence-tokens is 0"),
        (("--spot-price", "nan"), "--spot-price is nan"),
        (("--ondemand-price", 0), "--ondemand-price is 0"),
    ],
)
def test_bad_input_is_one_sentence(options: tuple[object, ...], says: str) -> None:
    result = run(*options)
    assert isinstance(result.exception, InputError)
    assert says in str(result.exception)
    assert "\n" not in str(result.exception)


def test_unwritable_targets(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    few = ("--segment", "lasp", "--policies", "ideal")
    for option in (("--csv", blocked / "x.csv"), ("--plots", blocked / "folder")):
        result = run(*few, *option)
        assert isinstance(result.exception, InputError)
        assert result.stdout == ""  # refused before anything is replayed


def test_wrong_choices_exit_with_2() -> None:
    assert run("--timing", "later").exit_code == 2
    assert run("--rules", "mine").exit_code == 2
