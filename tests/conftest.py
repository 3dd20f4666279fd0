"""For all tests: one thread per process, set before torch is loaded, the shared helpers, seeds.

Signals mean what they mean in a terminal, also where the suite runs in the background.

Tests on a cluster come last: what they need is built while the others run (``preparation``).

What hypothesis draws is fixed, so that a test which fails once fails always. To search further:
``HYPOTHESIS_PROFILE=search pytest …`` draws anew each time.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cluster import needs
from tests.cluster.errors import ClusterError
from tests.preparation import Preparation

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

_WITH_IMAGES = frozenset({"chart", "deploy", "e2e", "lifecycle", "observe"})
_preparation: Preparation | None = None


def _wants_cluster(item: pytest.Item) -> bool:
    return item.get_closest_marker("cluster") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_wants_cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    global _preparation
    wanted = [item for item in session.items if _wants_cluster(item)]
    if not wanted or needs.missing() or session.config.option.collectonly:
        return (yield)
    with_images = any(_WITH_IMAGES & set(item.path.parts) for item in wanted)
    _preparation = Preparation(with_images=with_images)
    try:
        return (yield)
    finally:
        _preparation.stop()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Outside of the test's own time limit, which a cold build would not keep."""
    if _preparation is not None and _wants_cluster(item):
        if _preparation.is_running and (reporter := _reporter(item.config)):
            reporter.write_line("\ntest cluster: being built (minutes in the first use)")
        try:
            _preparation.wait()
        except ClusterError as error:
            pytest.exit(str(error), returncode=pytest.ExitCode.TESTS_FAILED)
    return (yield)


def _reporter(config: pytest.Config) -> pytest.TerminalReporter | None:
    found = config.pluginmanager.get_plugin("terminalreporter")
    return found if isinstance(found, pytest.TerminalReporter) else None
