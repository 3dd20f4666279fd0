"""How an agent listens to its cloud: from the environment, all of it optional."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from pydantic import Field, ValidationError

from parcae_api.errors import InputError
from parcae_api.job import explain
from parcae_api.model import Contract


class Listen(StrEnum):
    """Whom to ask."""

    AUTO = "auto"
    """Whichever answers."""
    OFF = "off"
    AWS = "aws"
    GCE = "gce"
    AZURE = "azure"


_Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class NoticeSettings(Contract):
    """One agent's."""

    listen: Listen = Listen.AUTO
    """``PARCAE_SPOT_NOTICES``."""
    url: Annotated[str, Field(pattern=r"^http://[^/]+$")] = "http://169.254.169.254"
    """``PARCAE_METADATA_URL``, without a path."""
    poll_s: _Seconds = 2.0
    """``PARCAE_METADATA_POLL_S``: between two questions that decide."""
    slow_poll_s: _Seconds = 30.0
    """``PARCAE_METADATA_SLOW_POLL_S``: between two questions about what is days away."""
    timeout_s: _Seconds = 1.5
    """``PARCAE_METADATA_TIMEOUT_S``: of one question, all in all."""
    probe_again_s: _Seconds = 5.0
    """``PARCAE_METADATA_PROBE_S``: where nobody answers; doubles up to an hour."""
    provider_id: str = ""
    """``PARCAE_PROVIDER_ID``: the node's ``spec.providerID``, where it is known."""
    grace_s: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)] | None = None
    """``PARCAE_GRACE_S``: from SIGTERM to SIGKILL, the pod's ``terminationGracePeriodSeconds``; by
    default what the operator has written into the pod."""


_VARIABLES = {
    "listen": "PARCAE_SPOT_NOTICES",
    "url": "PARCAE_METADATA_URL",
    "poll_s": "PARCAE_METADATA_POLL_S",
    "slow_poll_s": "PARCAE_METADATA_SLOW_POLL_S",
    "timeout_s": "PARCAE_METADATA_TIMEOUT_S",
    "probe_again_s": "PARCAE_METADATA_PROBE_S",
    "provider_id": "PARCAE_PROVIDER_ID",
    "grace_s": "PARCAE_GRACE_S",
}


def notice_settings(environ: Mapping[str, str] = os.environ) -> NoticeSettings:
    """Settings from the environment; an empty variable is as good as none.

    Raises:
        InputError: a variable holds what it must not; the message names it.
    """
    given = {field: environ[name] for field, name in _VARIABLES.items() if environ.get(name)}
    if "url" in given:
        given["url"] = given["url"].rstrip("/")
    try:
        return NoticeSettings.model_validate(given)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise InputError(f"{_VARIABLES.get(field, field)}: {explain(error)}") from error
