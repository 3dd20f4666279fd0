"""Where things are kept: what is built once, and what belongs to one cluster.

::

    cache()/go/…        programs built from Go modules
    cache()/debs/…      Debian packages, unpacked
    cache()/images/…    buildah's store, image archives
    cache()/stores/…    containerd roots with images imported
    cache()/clusters/…  one folder for each running cluster

``PARCAE_CLUSTER_CACHE`` moves all of it, so that several clones share what is built. Clusters live
beside the stores because a node's images are hard links: one file system.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def cache() -> Path:
    """Returns the folder of everything that is built once; it need not exist yet."""
    return Path(os.environ.get("PARCAE_CLUSTER_CACHE") or ROOT / ".cache" / "cluster").resolve()


def clusters() -> Path:
    """Returns the folder that holds one folder for each running cluster."""
    return cache() / "clusters"


def key(*parts: str | bytes | Path) -> str:
    """Returns a short name for some content: strings as they are, files by what is in them."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part
        data = data.encode() if isinstance(data, str) else data
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Holds a lock that all processes sharing this cache see; it goes away with its holder."""
    folder = cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Makes a folder unless it is there: whole or not at all, and by one process at a time.

    ``make`` fills a fresh folder beside it, which then gets the name. What a killed ``make`` left
    is thrown away by the next one.
    """
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(f"{folder.parent.name}-{folder.name}"):
        if folder.is_dir():
            return folder
        for left in folder.parent.glob(f".{folder.name}.*"):
            shutil.rmtree(left, ignore_errors=True)
        # A compiler that outlived its killed parent still writes to the old one.
        unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
        unfinished.mkdir()
        make(unfinished)
        unfinished.rename(folder)
    return folder
