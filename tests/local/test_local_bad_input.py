"""What cannot work is refused before any process is started: one sentence, exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from local_site import Site

from parcae_api.errors import InputError


def refused(site: Site, manifest: Path, **options: object) -> str:
    with pytest.raises(InputError) as caught:
        site.run(manifest, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_speedup_of_nothing(site: Site) -> None:
    message = refused(site, site.manifest(), speedup=0.0)
    assert message == "--speedup: is 0; give a number above 0, like 30"


@pytest.mark.parametrize("speedup", [-1.0, float("nan"), float("inf")])
def test_speedup_that_is_none(site: Site, speedup: float) -> None:
    assert refused(site, site.manifest(), speedup=speedup).startswith("--speedup: is ")


@pytest.mark.parametrize("share", [2.0, -0.1, float("nan")])
def test_unnoticed_is_a_share(site: Site, share: float) -> None:
    assert refused(site, site.manifest(), unnoticed=share).startswith("--unnoticed: is ")


def test_unknown_field(site: Site) -> None:
    message = refused(site, site.manifest(spec={"instanzes": 3}))
    assert "spec.instanzes" in message
    assert "not a known field" in message


def test_missing_field(site: Site) -> None:
    path = site.manifest()
    path.write_text(path.read_text().replace("function:", "# function:"))
    message = refused(site, path)
    assert "spec.entrypoint.function" in message
    assert "required" in message


def test_minimum_above_maximum(site: Site) -> None:
    message = refused(site, site.manifest(spec={"instances": {"min": 5, "max": 2}}))
    assert "spec.instances" in message
    assert "min (5) must not be above max (2)" in message


def test_more_stages_than_instances(site: Site) -> None:
    message = refused(site, site.manifest(spec={"pipeline": {"minStages": 9}}))
    assert "minStages (9)" in message
    assert "instances.max is 4" in message


def test_entrypoint_without_a_function(site: Site) -> None:
    message = refused(site, site.manifest("models"))
    assert "'models' must have the form module:function" in message


@pytest.mark.parametrize("text", ["a: [", "- 1", "", "\x00"])
def test_no_yaml(site: Site, text: str) -> None:
    path = site.root / "broken.yaml"
    path.write_text(text)
    assert refused(site, path).startswith(str(path))


def test_no_manifest(site: Site) -> None:
    assert "cannot be read" in refused(site, site.root / "absent.yaml")


def test_another_kind(site: Site) -> None:
    path = site.manifest()
    path.write_text(path.read_text().replace("ParcaeJob", "Pod"))
    assert "kind" in refused(site, path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("1000,add,a\n0,add,b\n", "line 2"),
        ("what,is\nthis\n", "line 1"),
        ("0,add,a\n0,add,a\n", "line 2"),
    ],
)
def test_damaged_trace(site: Site, content: str, said: str) -> None:
    path = site.root / "bad.csv"
    path.write_text(content)
    message = refused(site, site.manifest(), trace=str(path))
    assert str(path) in message
    assert said in message


def test_unknown_trace(site: Site) -> None:
    message = refused(site, site.manifest(), trace="nowhere")
    assert "p3-dense-8" in message


def test_trace_without_instances(site: Site) -> None:
    message = refused(site, site.manifest(), trace=site.trace())
    assert "never has an instance" in message


def test_out_is_a_file(site: Site) -> None:
    (site.root / "run").write_text("mine")
    assert "is a file" in refused(site, site.manifest())
    assert (site.root / "run").read_text() == "mine"


def test_out_holds_somebody_elses_files(site: Site) -> None:
    (site.root / "run").mkdir()
    (site.root / "run" / "thesis.tex").write_text("mine")
    assert "no earlier run's" in refused(site, site.manifest())
    assert (site.root / "run" / "thesis.tex").read_text() == "mine"


def test_out_cannot_be_made(site: Site) -> None:
    message = refused(site, site.manifest(), name="job.yaml/run")
    assert message.startswith("--out: ")


def test_the_command_says_it_in_one_line(site: Site) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "parcae_cli.main", "local", str(site.manifest()), "--speedup", "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "parcae: --speedup: is 0; give a number above 0, like 30\n"
    assert done.stdout == ""


def test_ledger_of_no_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "parcae_cli.main", "ledger", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "holds no ledger" in done.stderr
