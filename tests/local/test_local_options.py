"""What the command makes of its options, before any process is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from local_site import Site

from parcae_api.errors import InputError
from parcae_api.job import Reduction
from parcae_cli.local.folder import RunFolder
from parcae_cli.local.options import LocalOptions, LocalRunPlan, check
from parcae_cli.local.run import _greeting


def checked(site: Site, manifest: Path, **options: Any) -> LocalRunPlan:
    """The checked options, given back at once."""
    plan = check(
        LocalOptions(
            **{
                "manifest": manifest,
                "trace": None,
                "segment": None,
                "speedup": 30.0,
                "out": site.root / "run",
                "verify": False,
                "unnoticed": 0.0,
                "seed": 0,
                "reduction": None,
                **options,
            }
        )
    )
    plan.folder.__exit__(None, None, None)
    return plan


def test_the_users_module_is_looked_for_beside_the_manifest(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = site.manifest()
    monkeypatch.chdir(tmp_path)
    assert checked(site, Path("job.yaml")).search_path == str(manifest.parent)


def test_the_records_folder_does_not_depend_on_where_one_is_later(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    assert checked(site, site.manifest(), out=Path("mine")).out == site.root / "mine"


def test_checkpoints_are_the_runs_own(site: Site) -> None:
    spec = {"checkpoint": {"path": str(site.root / "earlier")}}
    plan = checked(site, site.manifest(spec=spec))
    assert plan.checkpoints == site.root / "run" / "checkpoints"


def test_the_reduction_of_the_command_wins(site: Site) -> None:
    plan = checked(site, site.manifest(), reduction=Reduction.FAST)
    assert plan.job.spec.reduction is Reduction.FAST
    assert checked(site, site.manifest()).job.spec.reduction is Reduction.EXACT


def test_a_recording_of_more_instances_is_scaled_down(site: Site) -> None:
    plan = checked(site, site.manifest(), trace="p3", segment="hadp", seed=3)
    assert plan.trace is not None
    assert plan.trace.capacity == 4
    assert plan.trace.duration_s == 3600
    again = checked(site, site.manifest(), trace="p3", segment="hadp", seed=3)
    assert again.trace == plan.trace


def test_a_segment_needs_a_trace(site: Site) -> None:
    with pytest.raises(InputError, match="--segment: needs a --trace"):
        checked(site, site.manifest(), segment="hadp")


def test_a_suspended_job_would_wait_for_ever(site: Site) -> None:
    with pytest.raises(InputError, match=r"spec.suspend: is true, .*; remove it"):
        checked(site, site.manifest(spec={"suspend": True}))


def test_a_folder_in_use_is_refused(site: Site) -> None:
    with (
        RunFolder.take(site.root / "run"),
        pytest.raises(InputError, match="a run that still goes on"),
    ):
        checked(site, site.manifest())


def test_bad_input_empties_no_folder(site: Site) -> None:
    with RunFolder.take(site.root / "run") as folder:
        (folder.path / "summary.json").write_text("{}")
    for bad in ({"speedup": 0.0}, {"trace": "nowhere"}, {"manifest": site.root / "absent.yaml"}):
        with pytest.raises(InputError):
            checked(site, **{"manifest": site.manifest(), **bad})
    assert (folder.path / "summary.json").exists()


def test_the_greeting_says_what_is_about_to_happen(site: Site) -> None:
    trace = site.trace("0 +1 +2", duration_s=600)
    lines = list(_greeting(checked(site, site.manifest(), trace=trace)))
    assert lines == [
        "tiny on up to 4 instances, through tiny at 30x in 20 s; "
        "loading torch first, once for all workers"
    ]
    (line,) = _greeting(checked(site, site.manifest()))
    assert line == "tiny on up to 4 instances; loading torch first, once for all workers"


def test_the_greeting_warns_of_a_recording_that_never_has_enough(site: Site) -> None:
    trace = site.trace("0 +1 +2", duration_s=600)
    spec = {"pipeline": {"minStages": 3}}
    lines = list(_greeting(checked(site, site.manifest(spec=spec), trace=trace)))
    assert lines[1] == (
        "nothing will be trained: 3 instances are needed (instances.min, pipeline.minStages), "
        "and the recording never has more than 2"
    )
