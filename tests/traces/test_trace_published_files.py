"""Every published recording at hand is read, and agrees with its twins and with ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parcae_traces import find_trace, read_trace

DATA = Path(__file__).parents[3] / "shared" / "data" / "traces"
FILES = sorted(path for path in DATA.rglob("*") if path.is_file())

pytestmark = pytest.mark.skipif(not FILES, reason=f"needs the recordings in {DATA}")


def test_every_file_is_read() -> None:
    for path in FILES:
        trace = read_trace(path)
        assert trace.peak() == trace.capacity, path


def test_bundled_recordings_are_the_published_ones() -> None:
    for name, path in {
        "p3": "parcae/p3trace.csv",
        "g4dn": "bamboo/traces/g4dn-trace.csv",
        "gcp-v100": "bamboo/traces/gcloud/v100x1-east1c.txt",
    }.items():
        published, bundled = read_trace(DATA / path), find_trace(name)
        assert published.lives == bundled.lives
        assert (published.duration_s, published.notice_s, published.capacity) == (
            bundled.duration_s,
            bundled.notice_s,
            bundled.capacity,
        )


def test_step_plots_in_hours_are_those_in_seconds() -> None:
    pairs = [
        (path, path.with_name(f"{path.stem}_scaled.csv"))
        for path in (DATA / "bamboo" / "doc" / "data").iterdir()
    ]
    pairs = [pair for pair in pairs if pair[1].exists()]
    assert len(pairs) == 5
    for seconds, hours in (map(read_trace, pair) for pair in pairs):
        assert seconds.duration_s == hours.duration_s
        for (time_s, count), (rounded_s, same) in zip(
            seconds.counts(), hours.counts(), strict=True
        ):
            assert count == same
            assert rounded_s == pytest.approx(time_s, abs=2)


def test_recordings_of_counts_end_with_their_last_count() -> None:
    counted = [path for path in FILES if {"doc", "gcloud"} & set(path.parts)]
    assert len(counted) == 12
    for path in counted:
        last = path.read_text(encoding="utf-8").split()[-1].split(",")[-1]
        trace = read_trace(path)
        assert trace.count_at(trace.duration_s) == int(last), path
    for path in DATA.rglob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))["data"]
        trace = read_trace(path)
        gap_s = trace.duration_s / len(data)
        for index in range(0, len(data), 97):
            assert trace.count_at(index * gap_s) == data[index], path
