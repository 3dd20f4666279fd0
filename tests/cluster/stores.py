"""Containerd roots with images imported, made once and given to nodes as hard links.

Importing and unpacking an image takes seconds; a node with a linked store starts in none. The store
of several images grows out of the store of all but the last, so put what changes most at the end.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from . import debs
from .images import prune
from .machine import Machine
from .places import cache, key, once
from .programs import run

KEPT_STORES = 16


def ensure(archives: Sequence[Path]) -> Path:
    """Returns a folder that can be a node's /var/lib, with images imported in this order.

    An archive is known by its path, which ``images`` changes with its content.
    """
    folder = cache() / "stores" / key(*(str(archive) for archive in archives))

    def make(target: Path) -> None:
        if len(archives) > 1:
            copy(ensure(archives[:-1]), target)
        if archives:
            _import(target, archives[-1])

    made = once(folder, make)
    os.utime(made)
    prune(folder.parent, KEPT_STORES)
    return made


def copy(store: Path, target: Path) -> None:
    """Copies a store: links for blobs and layers, which are never written again.

    The databases are written in place, so they are copied for good.
    """
    target.mkdir(parents=True, exist_ok=True)
    run(["cp", "-al", f"{store}/.", target], bound_s=300)
    for database in store.rglob("*.db"):
        own = target / database.relative_to(store)
        own.unlink()
        shutil.copy2(database, own)


def _import(target: Path, archive: Path) -> None:
    folder = target.with_name(f"{target.name}.machine")
    machine = Machine(folder, "store", debs.ensure())
    _switch_off(machine)  # left by an import that was killed
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    target.rename(folder / "varlib")
    try:
        machine.network.make()
        machine.start()
        machine.import_image(archive)
        machine.stop_program("containerd")  # in good order: its databases are whole
    finally:
        _switch_off(machine)
    (folder / "varlib").rename(target)
    shutil.rmtree(folder)


def _switch_off(machine: Machine) -> None:
    machine.power_off()
    machine.network.close()
