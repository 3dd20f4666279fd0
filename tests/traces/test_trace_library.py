"""The bundled traces: all there, and derived from the recordings as they say."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from parcae_api.errors import InputError
from parcae_traces import (
    PUBLISHED,
    bundled_paths,
    bundled_traces,
    cut,
    find_trace,
    parse_segment,
    scale,
    statistics_of,
    write_compact,
)

ROOT = Path(__file__).parents[2]


def test_what_is_bundled() -> None:
    assert [trace.name for trace in bundled_traces()] == [
        "g4dn",
        "gcp-v100",
        "p3",
        "p3-dense-8",
        "p3-hadp",
        "p3-hasp",
        "p3-ladp",
        "p3-lasp",
    ]


def test_bundled_files_are_as_we_would_write_them() -> None:
    for path in bundled_paths().values():
        assert path.read_text(encoding="utf-8") == write_compact(find_trace(path))


def test_a_wheel_takes_every_bundled_file_along() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    files = wheel["force-include"]
    assert {name: place for name, place in files.items() if name.startswith("traces/")} == {
        f"traces/{path.name}": f"parcae_traces/bundled/{path.name}"
        for path in (ROOT / "traces").glob("*.trace")
    }


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_published_hours_are_cut_from_p3(name: str) -> None:
    assert find_trace(f"p3-{name}") == cut(find_trace("p3"), PUBLISHED[name])


def test_the_demo_trace_is_cut_and_scaled_from_p3() -> None:
    hour = cut(find_trace("p3"), parse_segment("0.65-1.65"))
    derived = replace(scale(hour, 8, seed=55), name="p3-dense-8")
    assert find_trace("p3-dense-8") == derived


def test_the_demo_trace_suits_a_demo() -> None:
    figures = statistics_of(find_trace("p3-dense-8"))
    assert (figures.duration_s, figures.capacity) == (3600.0, 8)
    assert figures.num_moments >= 12
    assert figures.min_count >= 3
    assert figures.max_batch >= 2
    assert figures.num_added >= 5


def test_a_path_is_read_and_a_name_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "mine.trace"
    copy.write_text(write_compact(find_trace("p3-lasp")), encoding="utf-8")
    assert find_trace(copy) == find_trace(str(copy)) == find_trace("p3-lasp")
    (tmp_path / "p3").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_trace("p3").capacity == 32  # the folder of that name does not hide it
    (tmp_path / "g4dn").write_text("0,add,a\n", encoding="utf-8")
    assert find_trace("g4dn").capacity == 1  # a file does


def test_neither_file_nor_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(InputError, match="'p4' is neither a file nor bundled; bundled are: g4dn"):
        find_trace("p4")
