"""The presets: each is allowed by the schema, and says what its cloud needs."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml
from chart_site import CHART, Helm, Object, Render, rendered

pytestmark = pytest.mark.cluster

PRESETS = {path.stem: path for path in sorted((CHART / "presets").glob("*.yaml"))}
CLOUDS = ("aks", "eks", "gke")


def values(name: str) -> Object:
    loaded: Object = yaml.safe_load(PRESETS[name].read_text())
    return loaded


def etcd(objects: list[Object]) -> Object:
    [found] = [o for o in objects if o["kind"] == "StatefulSet"]
    spec: Object = found["spec"]
    return spec


def test_there_is_one_for_each_cloud_and_one_to_try_it_out() -> None:
    assert set(PRESETS) == {*CLOUDS, "try"}


@pytest.mark.parametrize("name", PRESETS)
def test_lint(helm: Helm, name: str) -> None:
    done = helm("lint", "--strict", values=values(name))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", CLOUDS)
def test_on_a_cloud_three_members_keep_their_data_beside_spot_nodes(
    render: Render, name: str
) -> None:
    spec = etcd(render(**values(name)))
    assert spec["replicas"] == 3
    [claim] = spec["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"]
    affinity = spec["template"]["spec"]["affinity"]["nodeAffinity"]
    assert "requiredDuringSchedulingIgnoredDuringExecution" in affinity


def test_to_try_it_out_no_volume_is_needed_and_one_registry_is_enough(render: Render) -> None:
    objects = render(**values("try"), image={"registry": "example.com/team"})
    spec = etcd(objects)
    assert spec["replicas"] == 1
    assert "volumeClaimTemplates" not in spec
    pods = [o["spec"]["template"]["spec"] for o in objects if "template" in o.get("spec", {})]
    found = {container["image"] for pod in pods for container in pod["containers"]}
    assert found == {
        f"example.com/team/parcae-{program}:0.1.0" for program in ("operator", "planner", "etcd")
    }


def test_secrets_differ_between_installations(helm: Helm) -> None:
    def password() -> bytes:
        [board] = [o for o in rendered(helm) if o["metadata"]["name"] == "parcae-board"]
        return base64.b64decode(board["data"]["password"])

    assert password() != password()


def test_each_says_how_it_is_used() -> None:
    for path in PRESETS.values():
        assert f"--values charts/parcae/presets/{Path(path).name}" in path.read_text()
