"""The profiles that come with the project, and files that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from parcae_api.errors import InputError
from parcae_api.profile import LayerProfile, Profile
from parcae_optimizer.rules import Grid
from parcae_simulator.models import find_model
from parcae_simulator.profiles import Kind, bundled_profiles, find_profile, load_profile

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "profiles"
NAMES = ["bert", "gpt-1.5b", "gpt-6.7b", "resnet152", "vgg19"]


def test_five_models_come_with_the_project() -> None:
    assert list(bundled_profiles()) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"needs the figures in {PUBLISHED}")
def test_the_profiles_are_the_published_ones(name: str) -> None:
    theirs, ours = json.loads((PUBLISHED / f"{name}.json").read_text()), find_profile(name)
    assert ours.model == theirs["model"]
    assert list(ours.layer_parameters) == theirs["layer_params"]
    speeds = {str(grid): speed for grid, speed in ours.samples_per_second.items()}
    assert speeds == theirs["samples_per_second"]
    assert {str(k): v for k, v in ours.build_ms.items()} == theirs["build_ms_by_stages"]
    assert {str(k): v for k, v in ours.transfer_us.items()} == theirs["p2p_us_by_bytes"]
    assert ours.stages.model_dump(mode="json") == theirs["stages"]
    assert list(ours.excluded_replicas) == theirs["excluded_data_parallel"]
    assert ours.state_bytes_per_parameter == 4 * (1 + theirs["optimizer_states_per_param"])
    for field in ("rendezvous_ms", "process_ms", "restart_extra_ms"):
        assert getattr(ours, field) == theirs[field]


def test_regroup_laws() -> None:
    assert find_profile("gpt-6.7b").regroup_ms.ms(Grid(2, 12), Kind.ADD) == 500 * 39
    assert find_profile("vgg19").regroup_ms.ms(Grid(3, 2), Kind.REMOVE) == 340 * 6
    bert = find_profile("bert").regroup_ms
    steps = [bert.ms(Grid(d, 2), Kind.REMOVE) for d in (1, 5, 6, 11, 12, 16)]
    assert steps == [1000, 1000, 1500, 1500, 2000, 2000]
    assert bert.ms(Grid(12, 2), Kind.ADD) == 3000


def document() -> dict[str, Any]:
    found = yaml.safe_load(bundled_profiles()["gpt-6.7b"].read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"samples_per_second": {"2x12": float("nan")}}, "samples_per_second.2x12"),
        ({"samples_per_second": {"2x12": -1}}, "samples_per_second.2x12"),
        ({"samples_per_second": {"2-12": 1}}, "write replicas x stages like 2x12"),
        ({"samples_per_second": {"0x12": 1}}, "write replicas x stages like 2x12"),
        ({"samples_per_second": {}}, "samples_per_second"),
        ({"samples_per_second": {"1x24": 1}, "build_ms": {12: 5}}, "no time for depth 24"),
        ({"layer_parameters": [[2, 10], [0, 5]]}, "layer_parameters"),
        ({"layer_parameters": [[1, 2, 3]]}, "layer_parameters"),
        ({"layer_parameters": []}, "layer_parameters"),
        ({"layer_parameters": [[3, 100]]}, "stages.min"),
        ({"stages": {"min": 14, "max": 13}}, "stages.min: 14 is above stages.max"),
        ({"process_ms": float("inf")}, "process_ms"),
        ({"rendezvous_ms": "soon"}, "rendezvous_ms"),
        ({"transfer_us": {0: 1.0}}, "transfer_us"),
        ({"regroup_ms": {"per": "moons", "add": 1, "remove": 1}}, "regroup_ms.per"),
        ({"regroup_ms": {"per": "replicas", "add": {}, "remove": 1}}, "regroup_ms.add"),
        ({"samples_per_second": {"1x99": 1}}, "1x99 has more stages than layer_parameters has"),
        ({"model": "a/b"}, "model: 'a/b' is no name; use letters, digits"),
        ({"seats": 4}, "seats: is not a known field"),
    ],
)
def test_wrong_fields_are_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({**document(), **change}), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_profile(path)
    message = str(caught.value)
    assert says in message
    assert str(path) in message
    assert "\n" not in message


@pytest.mark.parametrize("missing", ["layer_parameters", "build_ms", "transfer_us", "model"])
def test_missing_fields_are_named(tmp_path: Path, missing: str) -> None:
    fields = document()
    del fields[missing]
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(fields), encoding="utf-8")
    with pytest.raises(InputError, match=f"{missing}: is required"):
        load_profile(path)


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b"a: [", b"\xff\xfe\x00", b"just words"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_profile(path)
    assert "\n" not in str(caught.value)


def test_unknown_names_and_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"bundled are: bert, gpt-1\.5b"):
        find_profile("gpt-9b")
    with pytest.raises(InputError, match="cannot be read"):
        find_profile(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        find_model(str(tmp_path / "none.json"))
    broken = tmp_path / "broken.json"
    broken.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="layers: is required"):
        find_model(str(broken))


def test_a_recorded_profile_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "my [bold] profile.json"
    layer = LayerProfile(name="only", param_bytes=1, state_bytes=1, activation_bytes=1)
    recorded = Profile(layers=(layer,), num_micro_batches=1, micro_batch_samples=1, total_steps=1)
    path.write_bytes(recorded.to_json())
    assert find_model(str(path)).name == "my-bold-profile"
