"""The folder of a run: emptied of an earlier run's records, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_api.errors import InputError
from parcae_cli.local.folder import MARKER, RunFolder


def test_it_is_made_with_its_parents(tmp_path: Path) -> None:
    with RunFolder.take(tmp_path / "a" / "b") as folder:
        assert folder.path == tmp_path / "a" / "b"
        assert (folder.path / MARKER).exists()


def test_an_earlier_run_is_removed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with RunFolder.take(out):
        (out / "summary.json").write_text("{}")
        (out / "ledger").mkdir()
        (out / "ledger" / "a.jsonl").write_text("")
    with RunFolder.take(out):
        assert [path.name for path in out.iterdir()] == [MARKER]


def test_what_a_link_points_to_is_left_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("mine")
    out = tmp_path / "run"
    with RunFolder.take(out):
        (out / "checkpoints").symlink_to(precious)
    with RunFolder.take(out):
        assert not (out / "checkpoints").is_symlink()
    assert (precious / "thesis.tex").read_text() == "mine"


def test_a_folder_of_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="holds files that are no earlier run's"):
        RunFolder.take(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_folder_of_a_run_that_goes_on_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with RunFolder.take(out):
        (out / "events.jsonl").write_text("so far\n")
        with pytest.raises(InputError, match="a run that still goes on; name another folder"):
            RunFolder.take(out)
        assert (out / "events.jsonl").read_text() == "so far\n"
    with RunFolder.take(out):
        assert not (out / "events.jsonl").exists()


@pytest.mark.parametrize("out", ["/proc/run", "/dev/null/run"])
def test_a_folder_that_cannot_be_made_is_named(out: str) -> None:
    with pytest.raises(InputError, match=f"--out: {out} cannot be written: .+; name another"):
        RunFolder.take(Path(out))


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="is a file; name a folder"):
        RunFolder.take(tmp_path / "run")
