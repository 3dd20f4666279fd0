"""Where the chart is, and what its tests call things."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "charts" / "parcae"
NAMESPACE = "infra"

Object = dict[str, Any]
Helm = Callable[..., subprocess.CompletedProcess[str]]
Render = Callable[..., list[Object]]

KINDS = "--api-versions=monitoring.coreos.com/v1"
"""Helm's word for a cluster that has the Prometheus operator's kinds."""


def rendered(helm: Helm, *words: str, **values: Any) -> list[Object]:
    done = helm("template", "parcae", *words, values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in objects if each["kind"] == kind}


def templates(objects: list[Object]) -> dict[str, Object]:
    """Pod templates by their program."""
    found = {}
    for each in objects:
        template = each.get("spec", {}).get("template")
        if isinstance(template, dict):
            found[template["metadata"]["labels"]["app.kubernetes.io/component"]] = template
    return found
