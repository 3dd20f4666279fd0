"""Whole runs through a recording, checked against an undisturbed one."""

from __future__ import annotations

import csv
import io
import json

import pytest
from local_site import Site
from rich.console import Console

from parcae_api.job import Reduction
from parcae_cli.ledger import show_ledger

pytestmark = pytest.mark.processes

STORM = ("0 +1..4", "3 -1", "5 +5", "6 -2 -3", "8 +6", "9 -4@0")
DEEP = {"pipeline": {"minStages": 2}, "checkpoint": {"everySteps": 10}}


def test_through_a_storm(site: Site) -> None:
    """Noticed and sudden losses, a pause, joins; with one replica a loss takes layers along."""
    manifest = site.manifest(spec=DEEP, steps=100_000)
    trace = site.trace(*STORM, duration_s=12)
    result = site.run(manifest, trace=trace, verify=True, unnoticed=0.5)
    assert result.code == 0, (result.out, result.err)
    summary = result.summary
    assert summary["bit_identical"] is True
    assert summary["samples_lost"] == summary["samples_repeated"] == 0
    assert summary["plan_changes"] >= 5
    assert summary["preemptions"]["sudden"] >= 1
    assert sum(summary["preemptions"].values()) == 4
    assert "0 lost, 0 repeated" in result.out


def test_fast_reduction(site: Site) -> None:
    manifest = site.manifest(spec={"pipeline": {"maxStages": 2}}, steps=100)
    trace = site.trace("0 +1..4", "3 -1", "4 -2", duration_s=60)
    result = site.run(manifest, trace=trace, verify=True, reduction=Reduction.FAST)
    assert result.code == 0, (result.out, result.err)
    summary = result.summary
    assert summary["steps_committed"] == 100
    assert summary["bit_identical"] is False
    undisturbed = summary["verification"]["final_loss"]
    assert summary["final_loss"] == pytest.approx(undisturbed, rel=0.01)


def test_records(site: Site) -> None:
    trace = site.trace("0 +1..3", "5 -1", duration_s=7)
    result = site.run(site.manifest(steps=100_000), trace=trace)
    assert result.code == 0, (result.out, result.err)
    summary = result.summary
    for key in (
        "steps_committed",
        "samples_committed",
        "samples_lost",
        "samples_repeated",
        "steps_replayed",
        "plan_changes",
        "preemptions",
        "migrations",
        "recovery_seconds",
        "samples_per_second",
        "final_loss",
        "bit_identical",
        "model_sha256",
        "state_sha256",
    ):
        assert key in summary, key
    assert summary["bit_identical"] is None
    assert set(summary["migrations"]) == {"intra_stage", "inter_stage", "pipeline"}
    for kind in summary["migrations"].values():
        assert set(kind) == {"count", "bytes", "pause_seconds"}
        assert set(kind["pause_seconds"]) == {"p50", "p95", "max"}
    steps = summary["steps_committed"]
    assert summary["samples_committed"] == steps * 16
    with (result.folder / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(steps))
    assert float(rows[-1]["loss"]) == summary["final_loss"]
    events = [json.loads(x) for x in (result.folder / "events.jsonl").read_text().splitlines()]
    assert {"join", "plan", "notice", "preemption", "migration"} <= {e["type"] for e in events}
    assert (result.folder / "timeline.png").read_bytes()[:4] == b"\x89PNG"

    out = io.StringIO()
    assert show_ledger(result.folder, Console(file=out, width=120)) == 0
    assert f"{steps} steps, {steps * 16} samples committed, 0 lost, 0 repeated" in out.getvalue()
    journal = max((result.folder / "ledger").glob("*.jsonl"), key=lambda p: p.stat().st_size)
    journal.write_text(journal.read_text().replace('"micro_batches":[0,', '"micro_batches":['))
    out = io.StringIO()
    assert show_ledger(result.folder, Console(file=out, width=120)) == 1
    assert "missing" in out.getvalue()


def test_a_second_run_replaces_the_first(site: Site) -> None:
    manifest = site.manifest(steps=10)
    first = site.run(manifest).summary
    second = site.run(manifest).summary
    assert first["state_sha256"] == second["state_sha256"] is not None
    assert second["steps_committed"] == 10
