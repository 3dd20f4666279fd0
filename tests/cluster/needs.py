"""What a machine must have to run a test cluster, and what this one lacks."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from . import debs
from .cgroups import MOUNT

PROGRAMS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "sysctl": "procps",
    "openssl": "openssl",
    "dpkg": "dpkg",
    "apt-get": "apt",
}
GO_VERSION = (1, 26)
MEMORY_BYTES = 5 * 1024**3
_TRY_NAMESPACES = """\
set -e
ip link add br0 type bridge
ip link add one type veth peer name two
ip link set one master br0
mkdir -p "$0/low" "$0/up" "$0/work" "$0/all"
mount -t overlay -o "lowerdir=$0/low,upperdir=$0/up,workdir=$0/work" overlay "$0/all"
"""


@functools.cache
def missing() -> tuple[str, ...]:
    """Returns one sentence for each thing that this machine lacks; empty where a cluster can run.

    Quick (0.1 s), and without the network: that a registry does not answer shows when it is asked.
    """
    checks: list[Callable[[], str]] = [_platform, _programs, _go, _debian, _cgroups, _memory]
    found = [sentence for check in checks if (sentence := check())]
    return tuple(found or [sentence for sentence in [_kernel()] if sentence])


def missing_for_packages() -> tuple[str, ...]:
    """Returns one sentence for each thing that unpacking Debian's packages needs and is not here.

    Less than a cluster needs: no Go, no namespaces.
    """
    lacking = [name for name in ("apt-get", "dpkg") if not shutil.which(name)]
    programs = f"needs the programs {', '.join(lacking)}" if lacking else ""
    return tuple(sentence for sentence in (_debian(), programs) if sentence)


def _platform() -> str:
    if sys.platform != "linux":
        return "needs Linux (namespaces, cgroups)"
    if os.geteuid() != 0:
        return "needs root (it makes network namespaces, mounts and cgroups of its own)"
    return ""


def _programs() -> str:
    lacking = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name)})
    return f"needs the Debian packages {', '.join(lacking)}" if lacking else ""


def _go() -> str:
    wanted = ".".join(map(str, GO_VERSION))
    if not shutil.which("go"):
        return f"needs Go {wanted} or newer in PATH (Kubernetes is built from its modules)"
    said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True).stdout
    numbers = re.search(r"go(\d+)\.(\d+)", said)
    if numbers and (int(numbers[1]), int(numbers[2])) < GO_VERSION:
        return f"needs Go {wanted} or newer; this is {said.strip()}"
    return ""


def _debian() -> str:
    if debs.suite() != debs.SUITE:
        return f"needs Debian {debs.SUITE} (its containerd, runc, buildah, and Python 3.11)"
    if any(path.is_file() for path in debs.SOURCES):
        return ""
    return "needs Debian's package mirrors set up"


def _cgroups() -> str:
    if MOUNT.is_dir() and os.access(MOUNT, os.W_OK):
        return ""
    return f"needs cgroups at {MOUNT} that can be written to"


def _memory() -> str:
    fields = dict(
        line.split(":", 1)
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("Mem")
    )
    total_bytes = int(fields["MemTotal"].split()[0]) * 1024
    if total_bytes >= MEMORY_BYTES:
        return ""
    return f"needs {MEMORY_BYTES // 1024**3} GiB of memory"


def _kernel() -> str:
    """Tries a bridge, a veth pair and an overlay mount, where nobody else sees them."""
    argv = ["unshare", "--net", "--mount", "--pid", "--fork", "--uts", "--ipc", "sh", "-c"]
    inner = f"mount -t tmpfs tmpfs /mnt; {_TRY_NAMESPACES}"
    done = subprocess.run([*argv, inner, "/mnt"], capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines()
    return f"needs namespaces, bridges, veth and overlay mounts ({said[-1] if said else 'refused'})"


if __name__ == "__main__":
    print("\n".join(missing()) or "nothing is missing")
