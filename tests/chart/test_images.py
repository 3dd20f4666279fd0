"""What our images are made of, and how they start."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tomllib
from typing import Any

import pytest
from chart_site import ROOT
from tests.cluster import images

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCES = ("api", "traces", "predictor", "optimizer", "simulator", "operator", "agent", "cli")
ENTRYPOINTS = {
    "operator": "parcae-operator",
    "planner": "parcae-planner",
    "agent": "parcae-agent",
    "agent-slim": "parcae-agent",
    "etcd": "etcd",
}


def stages() -> dict[str, list[str]]:
    """Instructions of each stage of the Dockerfile, in one line each."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("FROM "):
            name = line.split()[-1]
            found[name] = []
        elif line and not line.startswith("#") and name:
            found[name].append(" ".join(line.split()))
    return found


def requirements(*words: str) -> set[str]:
    script = [sys.executable, "images/requirements.py", *words]
    return set(subprocess.run(script, cwd=ROOT, capture_output=True, text=True).stdout.split())


def names(lines: set[str]) -> set[str]:
    return {line.partition(">")[0] for line in lines}


@pytest.mark.parametrize("target", ENTRYPOINTS)
def test_program_user_and_labels(target: str) -> None:
    lines = stages()[target]
    assert f'ENTRYPOINT ["{ENTRYPOINTS[target]}"]' in lines  # a shell in front would eat SIGTERM
    assert "USER 65532:65532" in lines
    [labels] = [line for line in lines if line.startswith("LABEL")]
    for key in ("title", "description", "version", "licenses"):
        assert f"org.opencontainers.image.{key}=" in labels
    assert f'image.version="{PROJECT["version"]}"' in labels


def test_entrypoints_are_there() -> None:
    assert set(ENTRYPOINTS.values()) - {"etcd"} <= PROJECT["scripts"].keys()


def test_what_programs_need_of_others() -> None:
    operator, planner = names(requirements("operator")), names(requirements("planner"))
    agent, slim = names(requirements("agent")), names(requirements("agent", "torch"))
    assert {"kopf", "kubernetes", "scipy"} <= operator
    assert {"fastapi", "statsmodels", "scipy"} <= planner
    assert not (operator | planner) & {"torch", "matplotlib", "typer", "rich"}
    assert not agent & {"kopf", "kubernetes", "scipy", "statsmodels"}
    assert agent - slim == {"torch"}


def test_only_sources_go_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    taken = {rule[1:] for rule in rules if rule.startswith("!")}
    assert taken == {
        *SOURCES,
        "images",
        "pyproject.toml",
        "constraints.txt",
        "README.md",
        "LICENSE",
    }


def test_all_sources_are_built() -> None:
    folders = {package.partition("/")[0] for package in _packages()}
    assert folders == set(SOURCES)
    assert {f"COPY {folder} {folder}" for folder in SOURCES} <= set(stages()["wheel"])


def _packages() -> list[str]:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    found: list[str] = tool["hatch"]["build"]["targets"]["wheel"]["packages"]
    return found


@pytest.mark.cluster
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("target", [name for name in ENTRYPOINTS if name != "agent"])
def test_built(cluster_needs: None, target: str) -> None:
    archive = images.build(ROOT, f"parcae-{target}:{PROJECT['version']}", target=target)
    with tarfile.open(archive) as tar:
        manifest = json.loads(_read(tar, "manifest.json"))[0]
        config = json.loads(_read(tar, manifest["Config"]))["config"]
        files = {name for layer in manifest["Layers"] for name in _files(tar, layer)}
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == [ENTRYPOINTS[target]]
    assert config["Labels"]["org.opencontainers.image.title"] == f"parcae-{target}"
    assert not any("/site-packages/torch/" in f or "/dist-packages/torch/" in f for f in files)
    assert not any(f.startswith("root/.cache/pip") for f in files)
    if target == "operator":
        assert any(f.endswith("parcae_operator/__pycache__/loop.cpython-311.pyc") for f in files)


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def _files(tar: tarfile.TarFile, layer: str) -> list[str]:
    file = tar.extractfile(layer)
    assert file is not None
    with tarfile.open(fileobj=file) as inner:
        return inner.getnames()
