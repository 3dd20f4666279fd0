"""The user's code fails: said once, exit code 1, never retried, nothing left running."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from local_site import Result, Site

from parcae_api.errors import InputError, ParcaeError

pytestmark = pytest.mark.processes

ENDS_WITHIN_S = 60


def failed(
    site: Site, function: str, *, spec: dict[str, object] | None = None, **args: object
) -> Result:
    started = time.monotonic()
    result = site.run(site.manifest(function, spec=spec, **args))
    assert time.monotonic() - started < ENDS_WITHIN_S
    assert result.code == 1, (result.out, result.err)
    assert result.err.count("the job failed: ") == 1
    return result


def said(result: Result) -> str:
    return result.err.partition("the job failed: ")[2].strip()


def test_no_such_module(site: Site) -> None:
    assert "there is no module 'absent'" in said(failed(site, "absent:gpt"))


def test_no_such_function(site: Site) -> None:
    assert "'models' has no function 'bert'" in said(failed(site, "models:bert"))


def test_wrong_arguments(site: Site) -> None:
    message = said(failed(site, "models:gpt", wings=2))
    assert message.startswith("spec.entrypoint.args: ")
    assert "wings" in message


def test_returns_something_else(site: Site) -> None:
    (site.root / "odd.py").write_text("def odd():\n    return 'training'\n")
    message = said(failed(site, "odd:odd"))
    assert "returned str; return a parcae_agent.Training" in message


def test_batch_that_does_not_divide(site: Site) -> None:
    message = said(failed(site, "models:gpt", global_batch=16, micro_batch=3))
    assert "16 is not a multiple of micro_batch 3" in message


def test_more_stages_than_layers(site: Site) -> None:
    spec = {"instances": {"min": 1, "max": 9}, "pipeline": {"minStages": 9}}
    message = said(failed(site, "models:gpt", spec=spec))
    assert "minStages is 9" in message
    assert "6 layers" in message


def test_raises_at_import(site: Site) -> None:
    (site.root / "broken.py").write_text("import sys\n\nraise KeyError('at import')\n")
    result = failed(site, "broken:gpt")
    assert "KeyError" in said(result)
    assert result.err.count("Traceback (most recent call last)") == 1
    assert str(site.root / "broken.py") in result.err


@pytest.mark.parametrize(("at_call", "step"), [(0, 0), (400, 50)])
def test_raises_in_a_step(site: Site, at_call: int, step: int) -> None:
    # Eight micro-batches a step on one worker: call 400 is the first of step 50.
    spec = {"instances": {"min": 1, "max": 1}}
    result = failed(site, "models:exploding", spec=spec, at_call=at_call)
    assert "layer 'fault' raised ZeroDivisionError: boom in process" in said(result)
    assert result.err.count("Traceback (most recent call last)") == 1
    assert "parcae_agent" not in result.err.partition("the job failed")[0]
    if step:
        assert result.summary["steps_committed"] == step
        assert result.summary["outcome"].startswith("failed: ")


def test_raises_on_one_of_four_workers(site: Site) -> None:
    spec = {"pipeline": {"minStages": 4}}
    result = failed(site, "models:exploding", spec=spec, at_call=80)
    assert result.summary["steps_committed"] == 10
    assert result.summary["samples_lost"] == 0


def test_loss_turns_nan(site: Site) -> None:
    message = said(failed(site, "models:turning_nan"))
    assert "the loss is nan" in message or "the gradient's norm is" in message
    assert "lower the learning rate" in message


def test_etcd_that_does_not_start(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PARCAE_ETCD", "/bin/false")
    with pytest.raises(InputError) as caught:
        site.run(site.manifest())
    assert "etcd" in str(caught.value)


def test_too_few_instances_for_the_whole_recording(site: Site) -> None:
    spec = {"instances": {"min": 3, "max": 4}}
    result = site.run(site.manifest(spec=spec), trace=site.trace("0 +1..2", duration_s=4))
    assert result.code == 1
    assert "the recording is over" in result.out
    assert "instances.min" in result.out


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_disk_gets_full(site: Site, small_disk: Path) -> None:
    name = str(small_disk / "run")

    def fill() -> None:
        site.await_commits(5, name)
        with (small_disk / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(1 << 16))
        with (small_disk / "crumbs").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x")

    filler = threading.Thread(target=fill)
    filler.start()
    try:
        with pytest.raises(ParcaeError, match="No space left"):
            site.run(site.manifest(steps=100_000), name=name)
    finally:
        filler.join()
