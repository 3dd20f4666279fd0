"""The model that is measured: the example GPT, and the same in plain torch."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "gpt"
ARGUMENTS = {"layers": 4, "width": 128, "context": 64, "batch": 32, "micro_batch": 4}
LAYERS = ARGUMENTS["layers"] + 2
MICRO_BATCHES = ARGUMENTS["batch"] // ARGUMENTS["micro_batch"]


def training(**changes: object):
    """The user's training, as a worker loads it."""
    if str(EXAMPLE) not in sys.path:
        sys.path.insert(0, str(EXAMPLE))
    from gpt import gpt

    return gpt(**{**ARGUMENTS, **changes})
