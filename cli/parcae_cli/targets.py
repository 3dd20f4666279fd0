"""Files that a command will write, looked at before the work that they shall hold."""

from __future__ import annotations

import os
from pathlib import Path

from parcae_api.errors import InputError


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written; leave it as it is.

    Raises:
        InputError: it cannot be opened for writing.
    """
    try:
        # A link to nothing is there, and stays.
        is_new = not os.path.lexists(path)
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
