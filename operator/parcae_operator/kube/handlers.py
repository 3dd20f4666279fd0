"""kopf's side: watches that wake. Nothing is decided here, and nothing is written to any object.

Only event handlers are used. Daemons, timers and change handlers would put finalizers or
annotations on objects, and a job must be deletable while no operator is there.
"""

from __future__ import annotations

from typing import Any

import kopf

from parcae_operator.kube.program import Program

registry = kopf.OperatorRegistry()

_JOBS = ("parcae.dev", "v1alpha1", "parcaejobs")


@kopf.on.event(*_JOBS, registry=registry, id="job")
async def job_event(event: kopf.RawEvent, memo: Program, **_: Any) -> None:
    """A job appeared, changed or is gone."""
    body = dict(event["object"])
    if event["type"] == "DELETED":
        memo.jobs.lost(body)
    else:
        memo.jobs.saw(body)


@kopf.on.event("", "v1", "pods", registry=registry, id="pod")
async def pod_event(event: kopf.RawEvent, memo: Program, **_: Any) -> None:
    """An agent pod appeared, changed or is gone."""
    body = dict(event["object"])
    if event["type"] == "DELETED":
        memo.services.store.lost_pod(body)
    else:
        memo.services.store.saw_pod(body)


@kopf.on.event("", "v1", "nodes", registry=registry, id="node")
async def node_event(event: kopf.RawEvent, memo: Program, **_: Any) -> None:
    """A node appeared, changed or is gone."""
    body = dict(event["object"])
    if event["type"] == "DELETED":
        memo.services.store.lost_node(body)
    else:
        memo.services.store.saw_node(body)


@kopf.on.event("", "v1", "events", registry=registry, id="node-event")
async def cluster_event(event: kopf.RawEvent, memo: Program, **_: Any) -> None:
    """Somebody said something about a node."""
    if event["type"] != "DELETED":
        memo.services.store.saw_event(dict(event["object"]))
