"""What the command and the list of needs say where no cluster runs, or can run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cluster import ClusterError, needs
from tests.cluster.__main__ import app, default_nodes
from tests.cluster.layout import ClusterFiles
from tests.cluster.take_down import owner_lives, sweep, take_down


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARCAE_CLUSTER_CACHE", str(tmp_path))


def test_the_status_of_no_cluster() -> None:
    said = CliRunner().invoke(app, ["status"])
    assert said.exit_code == 0
    assert said.output == "cluster parcae is not up\n"


def test_no_cluster_is_taken_down_without_a_word() -> None:
    said = CliRunner().invoke(app, ["down"])
    assert (said.exit_code, said.output) == (0, "")
    take_down("nobody")


def test_a_verb_for_a_cluster_that_is_not_up_says_so() -> None:
    said = CliRunner().invoke(app, ["kill", "spot-1", "--name", "mine"])
    assert isinstance(said.exception, ClusterError)
    assert str(said.exception) == "no cluster is called mine"


def test_a_folder_whose_owner_never_was_is_swept() -> None:
    files = ClusterFiles.of("torn")
    files.folder.mkdir(parents=True)
    files.settings.write_text("{")
    assert not owner_lives(files)
    assert sweep() == ["torn"]
    assert not files.folder.exists()


def test_the_cluster_to_work_with_has_spot_nodes_and_a_safe_one() -> None:
    spot = [spec.name for spec in default_nodes() if "cloud.google.com/gke-spot" in spec.labels]
    assert spot == ["spot-1", "spot-2", "spot-3"]
    assert [spec.name for spec in default_nodes() if spec.name not in spot] == ["safe"]


def test_who_is_not_root_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = needs.missing.__wrapped__()
    assert any(sentence.startswith("needs root") for sentence in found)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found = " ".join(needs.missing.__wrapped__())
    assert "iproute2" in found
    assert "needs Go 1.26" in found
