"""kopf's settings, and the program's start, end and sign of life."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import kopf

from parcae_operator.kube.handlers import registry
from parcae_operator.kube.labels import JOB
from parcae_operator.kube.program import Program

_LONGEST_BACKOFF_S = 30.0


class _EndlessBackoffs:
    """A control plane that is away for long must not end this program: it only ever waits."""

    def __iter__(self) -> Iterator[float]:
        wait_s = 1.0
        while True:
            yield wait_s * random.uniform(0.8, 1.2)
            wait_s = min(_LONGEST_BACKOFF_S, 1.7 * wait_s)


@kopf.on.startup(registry=registry, id="start")
async def start(settings: kopf.OperatorSettings, memo: Program, **_: Any) -> None:
    """Set kopf up and start the program."""
    configure(settings)
    try:
        await memo.start()
    except Exception as error:
        raise kopf.PermanentError(str(error)) from error


@kopf.on.login(registry=registry, id="login")
async def login(**kwargs: Any) -> Any:
    """The pod's account, else the user's kubeconfig; read anew when it has expired."""
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


@kopf.on.cleanup(registry=registry, id="stop")
async def stop(memo: Program, **_: Any) -> None:
    """Let go of everything."""
    await memo.close()


@kopf.on.probe(registry=registry, id="alive")
async def alive(memo: Program, **_: Any) -> str:
    """Whether the program still looks at the cluster."""
    if memo.is_stuck():
        raise kopf.PermanentError("no look at the cluster for too long")
    return "looking"


def configure(settings: kopf.OperatorSettings) -> None:
    """What kopf does with the API server, and what it must not."""
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.finalizer = "parcae.dev/operator"
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _EndlessBackoffs()
    settings.watching.server_timeout = 600
    settings.watching.chunk_size = 500
    settings.watching.label_selectors["v1", "pods"] = JOB
    settings.watching.field_selectors["v1", "events"] = "involvedObject.kind=Node"
    settings.process.ultimate_exiting_timeout = 60
