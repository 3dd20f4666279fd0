"""The operator's log: see ``parcae_api.log_lines``. Its libraries say much that is no news."""

from __future__ import annotations

import logging

from parcae_api.log_lines import LogFormat
from parcae_api.log_lines import log_to_stderr as write_to_stderr


def log_to_stderr(log_format: LogFormat) -> None:
    """Write what this program and its libraries have to say, without what is no news."""
    write_to_stderr(log_format)
    # Kopf says of every event that its handler has succeeded.
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    logging.getLogger("kopf.activities.probe").setLevel(logging.WARNING)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # health probes
