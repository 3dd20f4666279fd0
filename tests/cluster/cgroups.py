"""Cgroups of a cluster's nodes, in every hierarchy of the machine (version 1, hybrid or 2)."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")


def hierarchies() -> list[Path]:
    """Returns the root folder of every hierarchy."""
    if (MOUNT / "cgroup.controllers").exists():
        return [MOUNT]
    return sorted(path for path in MOUNT.iterdir() if path.is_dir() and not path.is_symlink())


def make(path: str) -> None:
    """Makes a cgroup, such as ``cluster/node``, in all hierarchies, ready to hold pods' cgroups."""
    for root in hierarchies():
        folder = root
        for part in Path(path).parts:
            _hand_down(folder)
            parent, folder = folder, folder / part
            folder.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):  # version 1: empty until somebody says
                if (folder / name).exists() and not (folder / name).read_text().strip():
                    with suppress(OSError):
                        (folder / name).write_text((parent / name).read_text())
        _hand_down(folder)


def _hand_down(folder: Path) -> None:
    """Version 2: a folder's controllers are its children's only where it says so."""
    control = folder / "cgroup.subtree_control"
    if not (folder / "cgroup.controllers").exists() or folder.name == "unified":
        return
    for controller in (folder / "cgroup.controllers").read_text().split():
        with suppress(OSError):
            control.write_text(f"+{controller}")


def processes(path: str) -> set[int]:
    """Returns the pids of all processes in a cgroup or below it."""
    found: set[int] = set()
    for root in hierarchies():
        for file in (root / path).rglob("cgroup.procs"):
            with suppress(OSError):
                found.update(map(int, file.read_text().split()))
    return found


def remove(path: str) -> bool:
    """Removes a cgroup and all below it, from the leaves up. Says whether nothing is left."""
    gone = True
    for root in hierarchies():
        for folder, _, _ in os.walk(root / path, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
    return gone
