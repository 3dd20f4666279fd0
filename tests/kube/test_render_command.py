"""``parcae render``: the pods of a manifest, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kube_objects import Object, template

from parcae_agent.settings import from_environment
from parcae_cli.main import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt" / "job.yaml"


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["parcae", "render", *args])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    code = caught.value.code
    return code if isinstance(code, int) else 0, out, err


def manifest(folder: Path, **spec: object) -> str:
    job: Object = {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {"name": "gpt", "namespace": "team"},
        "spec": {
            "instances": {"max": 4},
            "entrypoint": {"function": "train:gpt"},
            "template": template(),
            **spec,
        },
    }
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job))
    return str(path)


def test_the_examples_pod_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(monkeypatch, capsys, str(EXAMPLE))
    assert (code, err) == (0, "")
    (pod,) = yaml.safe_load_all(out)
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    assert pod["metadata"]["name"] == "gpt-000000"
    assert out.startswith("# Placeholders: ")


def test_as_many_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(monkeypatch, capsys, manifest(tmp_path), "--pods", "3")
    pods = list(yaml.safe_load_all(out))
    assert [pod["metadata"]["name"] for pod in pods] == ["gpt-000000", "gpt-000001", "gpt-000002"]
    assert {pod["metadata"]["namespace"] for pod in pods} == {"team"}
    assert "&id" not in out


def test_what_is_shown_is_what_an_agent_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(monkeypatch, capsys, manifest(tmp_path, seed=5))
    (pod,) = yaml.safe_load_all(out)
    env = {e["name"]: e.get("value") for e in pod["spec"]["containers"][0]["env"]}
    json.loads(env["PARCAE_AGENT"])
    told = from_environment({"PARCAE_AGENT": env["PARCAE_AGENT"], "PARCAE_ADDRESS": "1.2.3.4"})
    assert told.spec.seed == 5


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"template": {}}, "spec.template.spec.containers: is required"),
        ({"checkpoint": {"path": "/x"}}, "spec.checkpoint.path: /x lies on no volume"),
        ({"instances": {"min": 9, "max": 4}}, "spec.instances: min (9) must not be above max (4)"),
    ],
)
def test_a_manifest_that_cannot_work(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spec: Object,
    words: str,
) -> None:
    path = manifest(tmp_path, **spec)
    code, out, err = run(monkeypatch, capsys, path)
    assert (code, out) == (2, "")
    assert err.startswith(f"parcae: {path}: {words}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("count", ["0", "513", "many"])
def test_how_many_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: str
) -> None:
    code, out, err = run(monkeypatch, capsys, str(EXAMPLE), "--pods", count)
    assert (code, out) == (2, "")
    assert "--pods" in err


def test_a_file_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(monkeypatch, capsys, "/nowhere.yaml")
    assert code == 2
    assert err == "parcae: /nowhere.yaml: cannot be read: No such file or directory\n"
