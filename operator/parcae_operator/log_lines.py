"""How the operator's log is written: for people in a terminal, or one JSON object a line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest was given with ``extra``."""


class LogFormat(StrEnum):
    """Of a line of the log."""

    TEXT = "text"
    JSON = "json"


class JsonLines(logging.Formatter):
    """One JSON object a line.

    ``time`` (RFC 3339, UTC), ``level``, ``logger``, ``message``, ``thread``, ``error`` (a
    traceback, where there is one), and what was given with ``extra``.
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
        return json.dumps({**extra, **told}, default=str)


def formatter_of(log_format: LogFormat) -> logging.Formatter:
    """What writes the lines."""
    return JsonLines() if log_format is LogFormat.JSON else logging.Formatter(_TEXT)


def log_to_stderr(log_format: LogFormat) -> None:
    """Write what this program and its libraries have to say, without what is no news."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter_of(log_format))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # Kopf says of every event that its handler has succeeded.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    logging.getLogger("kopf.activities.probe").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # questions to the planner
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # health probes
