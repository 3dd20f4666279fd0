"""How logs are written: for people in a terminal, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

from parcae_api.errors import InputError
from parcae_api.log_context import all_fields, fields_here

VARIABLE = "PARCAE_LOG_FORMAT"
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest was given with ``extra``."""


_OURS = ("parcae_agent", "parcae_api")
"""What runs beside the user's code."""


class LogFormat(StrEnum):
    """Of a line of the log."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """One JSON object a line.

    ``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, ``thread``, ``error`` (a
    traceback, where there is one), what the line is about (see ``log_context``: ``namespace``,
    ``job``, ``revision``, ``pod``, ``worker``), and what was given with ``extra``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """See the class. Whatever is logged, it is one line."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "thread": record.threadName,
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        extra = {key: value for key, value in vars(record).items() if key not in _USUAL}
        return json.dumps({**all_fields(), **extra, **told}, default=str)


class TextLines(logging.Formatter):
    """Time, level, logger and message; what the line alone is about follows in brackets.

    Args:
        name: Stands behind the time: who writes, where several write to one file.
    """

    def __init__(self, name: str = "") -> None:
        who = f"{name} " if name else ""
        super().__init__(f"%(asctime)s {who}%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """See ``logging.Formatter.formatMessage``."""
        fields = " ".join(f"{key}={value}" for key, value in fields_here().items())
        line = super().formatMessage(record)
        return f"{line} [{fields}]" if fields else line


def formatter_of(log_format: LogFormat, name: str = "") -> logging.Formatter:
    """What writes the lines; in text ``name`` stands behind the time."""
    return JsonLines() if log_format is LogFormat.JSON else TextLines(name)


def log_format_of(environ: Mapping[str, str] = os.environ) -> LogFormat:
    """The format that ``PARCAE_LOG_FORMAT`` asks for; text if it asks for none.

    Raises:
        InputError: there is no such format.
    """
    given = environ.get(VARIABLE) or LogFormat.TEXT
    try:
        return LogFormat(given)
    except ValueError:
        known = " or ".join(LogFormat)
        raise InputError(f"{VARIABLE}: is {given!r:.40}; give {known}") from None


def log_ours_to_stderr(log_format: LogFormat) -> None:
    """Write what Parcae has to say; the rest is left to the user's code, which runs here, too."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter_of(log_format))
    for name in _OURS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False


def log_to_stderr(log_format: LogFormat, name: str = "") -> None:
    """Write what this program and its libraries have to say, from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter_of(log_format, name))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # questions to the planner, to clouds
