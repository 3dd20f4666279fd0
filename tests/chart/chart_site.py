"""Where the chart is, and what its tests call things."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
CHART = ROOT / "charts" / "parcae"
NAMESPACE = "infra"

Object = dict[str, Any]
Helm = Callable[..., subprocess.CompletedProcess[str]]
Render = Callable[..., list[Object]]
