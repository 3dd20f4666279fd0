"""``python -m tests.preparation [images]``: what tests on a cluster need, built and downloaded.

A session starts it in the background, at the lowest priority, and runs all other tests meanwhile;
the first test that is marked ``cluster`` waits for its end. Where all is there it takes no time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from tests.cluster import debs, images, policies, stores, toolchain
from tests.cluster.errors import ClusterError
from tests.cluster.fixtures import prepare
from tests.deploy.install import ROOT, VERSION

TARGETS = {"etcd": "etcd", "operator": "operator", "planner": "planner", "agent": "agent-slim"}
"""Our images as tests on nodes use them, by the Dockerfile's targets for them."""
_LAST_CHARACTERS = 4000


class Preparation:
    """One that runs in the background.

    Args:
        with_images: Ours, too.
    """

    def __init__(self, *, with_images: bool) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - stop closes it
        words = ["-m", "tests.preparation", *(["images"] if with_images else [])]
        self._process = subprocess.Popen(
            [sys.executable, *words],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
        )

    @property
    def is_running(self) -> bool:
        """Whether somebody would have to wait for it."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Returns when all is there.

        Raises:
            ClusterError: something cannot be built; with the end of what was said.
        """
        if self._process.wait():
            self._said.seek(0)
            end = self._said.read().decode(errors="replace")[-_LAST_CHARACTERS:]
            raise ClusterError(f"the cluster's parts could not be made ready:\n{end}")

    def stop(self) -> None:
        """The session ends. What is half done, the next one does anew."""
        self._process.terminate()
        self._process.wait()
        self._said.close()


def build_images() -> list[Path]:
    """Builds ours and returns their archives."""
    return [
        images.build(ROOT, f"parcae-{name}:{VERSION}", target=target)
        for name, target in TARGETS.items()
    ]


def main() -> None:
    """Prepare in this process."""
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    prepare()
    policies.prepare()
    if "images" in sys.argv[1:]:
        toolchain.helm()
        debs.ensure(debs.PROMETHEUS)
        # As the scenario's nodes want them: imported once for all.
        stores.ensure([images.pause(), images.python(), *build_images()])


if __name__ == "__main__":
    main()
