"""The traces that come with the project, and finding one by name or path."""

from __future__ import annotations

import os
from pathlib import Path

from parcae_api.errors import InputError
from parcae_traces.compact import SUFFIX
from parcae_traces.model import Trace
from parcae_traces.readers import read_trace

_PACKAGE = Path(__file__).resolve().parent
_PLACES = (_PACKAGE / "bundled", _PACKAGE.parent)
"""Where a wheel puts the files, and where they lie in the repository."""


def bundled_paths() -> dict[str, Path]:
    """The bundled files by the name of their trace, in order of name."""
    for place in _PLACES:
        if found := {path.stem: path for path in place.glob(f"*{SUFFIX}")}:
            return dict(sorted(found.items()))
    return {}


def bundled_traces() -> tuple[Trace, ...]:
    """All bundled traces, in order of name."""
    return tuple(read_trace(path) for path in bundled_paths().values())


def find_trace(where: str | Path) -> Trace:
    """Read a trace, given as a file in any readable format or as the name of a bundled one.

    Raises:
        InputError: there is no such file or name, or the file is wrong.
    """
    path = Path(where)
    bundled = bundled_paths()
    # A name has no suffix; a folder that happens to be called like a trace does not hide it.
    if (named := bundled.get(str(where))) is not None and not path.is_file():
        return read_trace(named)
    if path.name and not os.path.lexists(path):
        raise InputError(
            f"trace {str(where)!r} is neither a file nor bundled; bundled are: {', '.join(bundled)}"
        )
    return read_trace(path)
