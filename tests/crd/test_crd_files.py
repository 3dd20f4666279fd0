"""What is generated is what lies in the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from parcae_api.crd import CRD_FILE, crd_yaml, custom_resource_definition, main
from parcae_api.crd_reference import BEGIN, REFERENCE_FILE, with_reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gpt" / "kubernetes.yaml"
REMEDY = "run `make crds`"


def test_crd_file() -> None:
    text = (ROOT / CRD_FILE).read_text()
    assert text == crd_yaml(), REMEDY
    assert yaml.safe_load(text) == custom_resource_definition()


def test_the_chart_brings_the_same() -> None:
    copy = ROOT / "charts" / "parcae" / "crd" / CRD_FILE.name
    assert copy.read_text() == crd_yaml(), f"{REMEDY}, which copies it"


def test_crd_fits_into_the_annotation_of_kubectl_apply() -> None:
    assert len(crd_yaml()) < 262_144 / 4


def test_reference() -> None:
    page = (ROOT / REFERENCE_FILE).read_text()
    assert page == with_reference(page), REMEDY


def test_reference_shows_the_example() -> None:
    assert f"```yaml\n{EXAMPLE.read_text()}```" in (ROOT / REFERENCE_FILE).read_text()


def test_a_page_without_marks_is_not_overwritten() -> None:
    with pytest.raises(ValueError, match="must hold the lines"):
        with_reference(f"# ParcaeJob\n{BEGIN}\n")


def test_command_writes_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    REFERENCE_FILE.parent.mkdir()
    REFERENCE_FILE.write_text((ROOT / REFERENCE_FILE).read_text())
    main()
    assert CRD_FILE.read_text() == (ROOT / CRD_FILE).read_text()
    assert REFERENCE_FILE.read_text() == (ROOT / REFERENCE_FILE).read_text()
    assert str(CRD_FILE) in capsys.readouterr().out
