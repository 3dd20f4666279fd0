"""The same protocol on CUDA devices with NCCL. Left out, loudly, where there are none."""

from pathlib import Path

import pytest
import torch
from crew import Crew

from parcae_agent.checkpoint import layer_file
from parcae_api.job import Entrypoint, Instances, JobSpec
from parcae_api.plan import PlanReason

pytestmark = [pytest.mark.gpu, pytest.mark.processes]

STEPS = 24


@pytest.fixture
def spec() -> JobSpec:
    return JobSpec(
        instances=Instances(max=2),
        entrypoint=Entrypoint(function="models:gpt", args={"steps": STEPS}),
        seed=5,
    )


def _crew(folder: Path, spec: JobSpec) -> Crew:
    return Crew(folder, spec, str(Path(__file__).resolve().parent.parent / "support"))


def _state(folder: Path) -> list[bytes]:
    return [layer_file(folder / "checkpoints", STEPS, k).read_bytes() for k in range(6)]


def _undisturbed(folder: Path, spec: JobSpec) -> list[bytes]:
    crew = _crew(folder, spec)
    try:
        crew.launch("alone", device="cuda:0")
        crew.plan(1, 1, ["alone"])
        crew.wait_saved(STEPS)
    finally:
        crew.close()
    return _state(folder)


@pytest.mark.skipif(torch.cuda.device_count() < 1, reason="needs a CUDA device")
def test_one_device_trains_twice_alike(tmp_path: Path, spec: JobSpec) -> None:
    assert _undisturbed(tmp_path / "a", spec) == _undisturbed(tmp_path / "b", spec)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_layouts_change_and_a_worker_dies_with_the_same_bits(tmp_path: Path, spec: JobSpec) -> None:
    crew = _crew(tmp_path / "run", spec)
    try:
        crew.launch("a", device="cuda:0")
        crew.launch("b", device="cuda:1")
        crew.plan(2, 1, ["a", "b"])
        crew.wait_committed(4)
        crew.plan(1, 2, ["b", "a"])
        crew.wait_committed(9)
        crew.plan(2, 1, ["a", "b"])
        crew.wait_committed(14)
        crew.kill("b")
        crew.plan(1, 1, ["a"], reason=PlanReason.LOSS)
        crew.wait_saved(STEPS)
        ledger = crew.ledger()
    finally:
        crew.close()
    assert ledger.is_sound
    assert _state(tmp_path / "run") == _undisturbed(tmp_path / "alone", spec)
