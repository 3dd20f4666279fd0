"""Where our own warnings go during a run: into its folder, not across the screen."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parcae_api.log_lines import formatter_of, log_format_of

_LOGGERS = ("parcae_api", "parcae_agent", "parcae_operator", "parcae_optimizer", "parcae_cli")


class _QuietFileHandler(logging.FileHandler):
    """A full disk is not worth a traceback per line."""

    def handleError(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler.handleError``."""


@contextmanager
def log_to(path: Path) -> Iterator[None]:
    """Have what this process logs written to a file."""
    handler = _QuietFileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(formatter_of(log_format_of()))
    before = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(handler)
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)
        with contextlib.suppress(OSError):
            handler.close()
