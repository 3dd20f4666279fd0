"""Helm, as the test cluster's toolchain builds it, and what it makes of our chart."""

from __future__ import annotations

import functools
import json
import subprocess
from typing import Any

import pytest
import yaml
from chart_site import CHART, NAMESPACE, Helm, Object, Render
from tests.cluster import toolchain
from tests.cluster.fixtures import cluster_needs

__all__ = ["cluster_needs"]


@pytest.fixture(scope="session")
def helm(cluster_needs: None, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Runs helm on the chart with values: ``helm("lint", {"planner": {"enabled": False}})``."""
    program = toolchain.helm()
    folder = tmp_path_factory.mktemp("values")

    def run(*words: str, values: Object | None = None) -> subprocess.CompletedProcess[str]:
        file = folder / "values.json"
        file.write_text(json.dumps(values or {}))
        argv = [str(program), *words, str(CHART), f"--namespace={NAMESPACE}", f"--values={file}"]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="session")
def render(helm: Helm) -> Render:
    """Objects that the chart becomes with values; the same values are rendered once."""

    @functools.cache
    def text(values: str) -> str:
        done = helm("template", "parcae", values=json.loads(values))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(**values: Any) -> list[Object]:
        return [each for each in yaml.safe_load_all(text(json.dumps(values))) if each]

    return run
