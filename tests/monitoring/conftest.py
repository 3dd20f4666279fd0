"""promtool, from Debian's package, unpacked beside the test cluster's programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cluster import debs, needs

Promtool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs promtool: ``promtool("check", "rules", path)``. Skips, and says why, where it cannot."""
    if missing := needs.missing_for_packages():
        pytest.skip(f"monitoring: {'; '.join(missing)}")
    program = debs.ensure(debs.PROMETHEUS).promtool

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        argv = [program, *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    return run
