"""Agents' pods where Pod Security `restricted` is enforced, as a real API server judges."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from parcae_cli.main import app

from .api_server import Object, Server

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
PODS = "/api/v1/namespaces/strict/pods"


@pytest.fixture(scope="module")
def strict(crd_server: Server) -> Server:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"metadata": {"name": "strict", "labels": labels}}
    assert crd_server.send("POST", "/api/v1/namespaces", namespace).ok
    account = {"metadata": {"name": "default"}}
    assert crd_server.send("POST", "/api/v1/namespaces/strict/serviceaccounts", account).status in (
        201,
        409,  # the controller manager was first
    )
    return crd_server


def pod(manifest: Path) -> Object:
    """What the operator would make of it."""
    said = CliRunner().invoke(app, ["render", str(manifest)])
    assert said.exit_code == 0, said.output
    made: Object = yaml.safe_load(said.stdout)
    made["metadata"].pop("ownerReferences")  # of a job that is not there
    made["metadata"]["namespace"] = "strict"
    return made


def test_the_example_is_accepted(strict: Server) -> None:
    made = pod(ROOT / "examples" / "gpt" / "job.yaml")
    answer = strict.send("POST", PODS, made, dryRun="All", fieldValidation="Strict")
    assert answer.ok, answer.body


def test_a_template_that_asks_for_more_is_refused_and_it_is_said_why(
    strict: Server, tmp_path: Path
) -> None:
    job = yaml.safe_load((ROOT / "examples" / "gpt" / "job.yaml").read_text())
    job["spec"]["template"]["spec"]["hostNetwork"] = True
    manifest = tmp_path / "job.yaml"
    manifest.write_text(yaml.safe_dump(job))
    answer = strict.send("POST", PODS, pod(manifest), dryRun="All")
    assert answer.status == 403
    assert "host namespaces (hostNetwork=true)" in answer.body["message"]
