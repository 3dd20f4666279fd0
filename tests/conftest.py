"""For all tests: one thread per process, set before torch is loaded, the shared helpers, seeds.

Signals mean what they mean in a terminal, also where the suite runs in the background.

What hypothesis draws is fixed, so that a test which fails once fails always. To search further:
``HYPOTHESIS_PROFILE=search pytest …`` draws anew each time.
"""

import os
import signal
import sys
from pathlib import Path

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "support"))

for _number, _handler in [
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
]:
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))
