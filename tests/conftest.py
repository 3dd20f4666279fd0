"""For all tests: one thread per process, set before torch is loaded, and the shared helpers."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "support"))
