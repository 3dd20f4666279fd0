"""The folder of a run: made, kept from others while the run lasts, emptied of an earlier run."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from parcae_api.errors import InputError

MARKER = ".parcae-run"
"""Says that a folder is a run's: only such a folder is ever emptied."""


class RunFolder:
    """A folder that is this run's alone, until it is closed or the process ends."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def take(cls, out: Path) -> Self:
        """Make the folder, or empty an earlier run's; never touch anything else.

        Raises:
            InputError: it holds other files, another run is using it, or it cannot be written.
        """
        try:
            if out.exists() and not out.is_dir():
                raise InputError(f"--out: {out} is a file; name a folder")
            marker = out / MARKER
            if out.is_dir() and any(out.iterdir()) and not marker.exists():
                raise InputError(
                    f"--out: {out} holds files that are no earlier run's; name an empty folder"
                )
            out.mkdir(parents=True, exist_ok=True)
            lock = os.open(marker, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _take_lock(lock, out)
                _empty(out)
                os.write(lock, b"made by parcae local; emptied by the next run\n")
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            detail = error.strerror or str(error)
            raise InputError(
                f"--out: {out} cannot be written: {detail}; name another folder"
            ) from error
        return cls(out.resolve(), lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._lock)


def _take_lock(lock: int, out: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"--out: {out} is the folder of a run that still goes on; name another folder"
        ) from None
    os.truncate(lock, 0)


def _empty(out: Path) -> None:
    for entry in out.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
