"""Where promtool cannot be had, that is said and its tests are left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import left_out
from tests.cluster import debs, needs
from tests.cluster.places import key


def test_what_is_missing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(debs, "suite", lambda: "trixie")
    debian, programs = needs.missing_for_packages()
    assert f"needs Debian {debs.SUITE}" in debian
    assert "apt-get, dpkg" in programs
    left_out.main()
    assert f"LEFT OUT  monitoring: {debian}" in capsys.readouterr().out


def test_each_set_of_packages_has_a_folder_of_its_own() -> None:
    assert key(debs.SUITE, *debs.PACKAGES) != key(debs.SUITE, *debs.PROMETHEUS)
    assert not set(debs.PROMETHEUS) & set(debs.PACKAGES)
