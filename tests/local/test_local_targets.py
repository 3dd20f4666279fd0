"""A file that will be written is looked at, and left as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_api.errors import InputError
from parcae_cli.targets import check_writable


def test_nothing_is_left_where_nothing_was(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.csv")
    assert not list(tmp_path.iterdir())


def test_what_is_there_stays(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text("figures")
    check_writable(old)
    assert old.read_text() == "figures"


def test_a_link_to_nothing_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "latest.csv"
    link.symlink_to(tmp_path / "target.csv")
    check_writable(link)
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["no/such/folder.csv", "x" * 300, "."])
def test_what_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"cannot be written: \w+"):
        check_writable(tmp_path / name)
