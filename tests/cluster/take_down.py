"""Takes down a cluster by what its folder says, whoever started it and however that ended."""

from __future__ import annotations

import json
import shutil

from . import cgroups
from .layout import ClusterFiles
from .machine import power_off
from .places import clusters, locked
from .processes import BOOT_ID, Process, started_ticks
from .waiting import until


def take_down(name: str) -> None:
    """Kills all processes of a cluster and removes all that it has on the machine.

    Does nothing where there is no such cluster.
    """
    files = ClusterFiles.of(name)
    with locked(f"cluster-{name}"):
        if not files.folder.exists():
            return
        for file in files.folder.glob("nodes/*/machine.pid"):
            power_off(Process(file, file.with_suffix(".log")))
        for file in [*files.folder.glob("nodes/*/*.pid"), *files.pids.glob("*.pid")]:
            Process(file, file.with_suffix(".log")).kill()
        until(
            f"the cgroups of cluster {name} to go",
            lambda: cgroups.remove(files.cgroup),
            bound_s=30,
        )
        shutil.rmtree(files.folder)


def owner_lives(files: ClusterFiles) -> bool:
    """Says whether a cluster is in use: its owner lives, or nobody has to own it."""
    try:
        data = json.loads(files.settings.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    owner = data["owner"]
    same_boot = bool(owner["boot"] == BOOT_ID.read_text().strip())
    return same_boot and bool(data["kept"] or started_ticks(owner["pid"]) == owner["ticks"])


def names() -> list[str]:
    """Returns the names of all clusters that have a folder."""
    if not clusters().is_dir():
        return []
    return sorted(path.name for path in clusters().glob("[!.]*") if path.is_dir())


def sweep() -> list[str]:
    """Takes down every cluster whose owner was killed; returns their names."""
    left = [name for name in names() if not owner_lives(ClusterFiles.of(name))]
    for name in left:
        take_down(name)
    return left
