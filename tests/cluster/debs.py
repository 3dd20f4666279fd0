"""Debian's own containerd, runc, buildah, Prometheus and what they need: unpacked, not installed.

Nothing of the machine changes: no service starts, no package is upgraded. The package lists are our
own, too, so the machine's need not be fresh, and its other sources need not answer.
"""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError
from .places import cache, key, once
from .programs import run

PACKAGES = (
    "containerd",
    "runc",
    "containernetworking-plugins",
    "buildah",
    "mmdebstrap",
    "nftables",
)
PROMETHEUS = ("prometheus",)
"""Prometheus and promtool, which only tests of monitoring need."""
FIREWALL = ("iptables", "ipset")
"""What holds network policies up, where a cluster has them."""
# Apt would upgrade login and passwd for buildah's uidmap, which root does not need.
UNWANTED = frozenset({"login", "passwd", "uidmap", "libsubid4"})
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
SUITE = "bookworm"


@dataclass(frozen=True)
class Unpacked:
    """A folder that packages were unpacked into, as if it were the root of a machine."""

    root: Path

    @property
    def bin(self) -> Path:
        """Where containerd, its shim and ctr are."""
        return self.root / "usr/bin"

    @property
    def runc(self) -> Path:
        """The program that makes containers."""
        return self.root / "usr/sbin/runc"

    @property
    def prometheus(self) -> Path:
        """Prometheus, where it was asked for."""
        return self.bin / "prometheus"

    @property
    def promtool(self) -> Path:
        """The program that checks rules and plays them, where Prometheus was asked for."""
        return self.bin / "promtool"

    @property
    def cni(self) -> Path:
        """Where the network plugins are."""
        return self.root / "usr/lib/cni"

    def as_if_installed(self, argv: Sequence[str | Path]) -> list[str]:
        """Returns the command that runs ``argv`` with the packages' /usr laid over the machine's.

        A mount namespace of its own, so only that command sees it. (PATH and LD_LIBRARY_PATH would
        not do: buildah starts itself again with an empty environment.)
        """
        lay = 'mount -t overlay -o "lowerdir=$0/usr:/usr" overlay /usr && exec "$@"'
        unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", lay]
        return [*unshared, str(self.root), *map(str, argv)]


def sources() -> Path:
    """Returns the machine's list of Debian mirrors.

    Raises:
        ClusterError: it has none, so it is not a Debian.
    """
    for path in SOURCES:
        if path.is_file():
            return path
    raise ClusterError(f"no Debian mirrors are set up: none of {', '.join(map(str, SOURCES))}")


def suite() -> str:
    """Returns the name of the machine's Debian release; empty where it is none."""
    try:
        text = Path("/etc/os-release").read_text()
    except FileNotFoundError:
        return ""
    found = re.search(r'^VERSION_CODENAME="?(\w+)', text, re.MULTILINE)
    return found[1] if found and re.search(r"^ID=debian$", text, re.MULTILINE) else ""


def ensure(packages: Sequence[str] = PACKAGES) -> Unpacked:
    """Downloads and unpacks the packages (about 10 s) unless they are there.

    Each set of packages has a folder of its own.
    """
    folder = cache() / "debs" / key(SUITE, *packages)
    return Unpacked(once(folder, functools.partial(_unpack, packages)) / "root")


def _apt(folder: Path) -> list[str]:
    """Returns apt-get with package lists of its own, below a folder."""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    source = folder / f"mirrors{sources().suffix}"
    if not source.exists():
        shutil.copy(sources(), source)
    options = {
        "Dir::State::lists": lists,
        "Dir::Cache": folder / "apt-cache",
        "Dir::Etc::sourcelist": source,
        "Dir::Etc::sourceparts": "-",
        "APT::Sandbox::User": "root",
    }
    (folder / "apt-cache/archives/partial").mkdir(parents=True, exist_ok=True)
    return ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]


def _unpack(packages: Sequence[str], target: Path) -> None:
    work = target / "work"
    apt = _apt(work)
    run([*apt, "update"], bound_s=300)
    plan = run([*apt, "install", "--simulate", "--no-install-recommends", *packages]).stdout
    wanted = set(re.findall(r"^Inst (\S+)", plan, re.MULTILINE)) | set(packages)
    archives = work / "archives"
    archives.mkdir()
    run([*apt, "download", *sorted(wanted - UNWANTED)], cwd=archives, bound_s=600)
    for archive in sorted(archives.glob("*.deb")):
        run(["dpkg", "-x", archive, target / "root"])
    shutil.rmtree(work)
