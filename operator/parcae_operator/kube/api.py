"""The only module that talks to the API server. Objects are plain dicts, as they travel.

Every call is bounded in time. A call that fails may have been carried out: whoever calls looks
again before it repeats.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import aiohttp
from kubernetes.aio import client, config

from parcae_operator.kube.errors import (
    ClusterRefused,
    ClusterUnavailable,
    Conflict,
    Forbidden,
    NotFound,
)

Object = dict[str, Any]
GROUP = "/apis/parcae.dev/v1alpha1"
_NETWORKING = "/apis/networking.k8s.io/v1"
_TIMEOUT_S = 10.0
_PAGE = 500
_LIST_STARTS = 3
_REFUSALS = {401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict}
_TRY_AGAIN = frozenset({408, 425, 429})


class ClusterApi:
    """Calls to the API server. Belongs to one event loop. An async context manager."""

    def __init__(self, configuration: client.Configuration) -> None:
        self._client = client.ApiClient(configuration)
        self.answers: bool | None = None
        """Whether the newest call was answered, be it with a refusal; None before the first."""

    @classmethod
    async def connect(cls) -> Self:
        """With the pod's account inside a cluster, else with the user's kubeconfig.

        Raises:
            kubernetes.aio.config.ConfigException: there is neither.
        """
        configuration = client.Configuration()
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=configuration)
        return cls(configuration)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    async def jobs(self, namespace: str = "") -> list[Object]:
        """All jobs, of one namespace or of all."""
        return await self._list(f"{GROUP}{_in(namespace)}/parcaejobs")

    async def pods(self, label_selector: str, namespace: str = "") -> list[Object]:
        """Pods with these labels."""
        return await self._list(f"/api/v1{_in(namespace)}/pods", labelSelector=label_selector)

    async def nodes(self) -> list[Object]:
        """All nodes."""
        return await self._list("/api/v1/nodes")

    async def create_pod(self, pod: Object) -> Object:
        """Create a pod in its namespace; what the server made of it.

        Raises:
            Conflict: there is one of that name.
        """
        namespace = pod["metadata"]["namespace"]
        return await self._call("POST", f"/api/v1{_in(namespace)}/pods", body=pod)

    async def delete_pod(
        self, namespace: str, name: str, uid: str, grace_s: int | None = None
    ) -> None:
        """Delete this very pod; done too when it is gone.

        Args:
            namespace: The pod's.
            name: Of the pod.
            uid: Of the pod: another one of that name is left alone.
            grace_s: Seconds it has left; None: as its template says.
        """
        await self._delete(f"/api/v1{_in(namespace)}/pods/{quote(name)}", uid, grace_s)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete this very job; its pods go with it."""
        await self._delete(f"{GROUP}{_in(namespace)}/parcaejobs/{quote(name)}", uid, None)

    async def write_status(self, namespace: str, name: str, uid: str, status: Object) -> Object:
        """Replace the fields of a job's status.

        Raises:
            NotFound: the job is gone.
            Conflict: the job of that name is another one.
        """
        return await self._call(
            "PATCH",
            f"{GROUP}{_in(namespace)}/parcaejobs/{quote(name)}/status",
            body={"metadata": {"uid": uid}, "status": status},
            content_type="application/merge-patch+json",
        )

    async def create_event(self, namespace: str, event: Object) -> None:
        """Tell people something about an object."""
        await self._call("POST", f"/apis/events.k8s.io/v1{_in(namespace)}/events", body=event)

    async def put_secret(self, secret: Object) -> None:
        """Create a Secret, or give the one of that name the same data. None is ever read."""
        await self._put("/api/v1", "secrets", secret, "data")

    async def put_network_policy(self, policy: Object) -> None:
        """Create a NetworkPolicy, or give the one of that name the same rules."""
        await self._put(_NETWORKING, "networkpolicies", policy, "spec")

    async def delete_network_policy(self, namespace: str, name: str) -> None:
        """Delete one; done too when there is none."""
        path = f"{_NETWORKING}{_in(namespace)}/networkpolicies/{quote(name)}"
        with contextlib.suppress(NotFound):
            await self._call("DELETE", path)

    async def has_jobs_kind(self) -> bool:
        """Whether the custom resource definition is installed."""
        try:
            found = await self._call("GET", GROUP)
        except NotFound:
            return False
        return any(kind.get("name") == "parcaejobs" for kind in found.get("resources", ()))

    async def _put(self, group: str, kind: str, obj: Object, field: str) -> None:
        metadata = obj["metadata"]
        path = f"{group}{_in(metadata['namespace'])}/{kind}"
        try:
            await self._call("POST", path, body=obj)
        except Conflict:
            await self._call(
                "PATCH",
                f"{path}/{quote(metadata['name'])}",
                body={field: obj[field]},
                content_type="application/merge-patch+json",
            )

    async def _list(self, path: str, **query: str) -> list[Object]:
        items: list[Object] = []
        token, starts_left = "", _LIST_STARTS
        while True:
            page = {**query, "limit": str(_PAGE), **({"continue": token} if token else {})}
            try:
                found = await self._call("GET", path, query=page)
            except ClusterRefused:
                starts_left -= 1
                if not token or not starts_left:
                    raise
                # The list went out of date while its pages were read (410): from the start.
                items, token = [], ""
                continue
            items += found.get("items") or []
            token = (found.get("metadata") or {}).get("continue") or ""
            if not token:
                return items

    async def _delete(self, path: str, uid: str, grace_s: int | None) -> None:
        body: Object = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            await self._call("DELETE", path, body=body)
        except (NotFound, Conflict):
            return

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                request = await self._client.param_serialize(
                    method,
                    path,
                    query_params=list((query or {}).items()),
                    header_params={"Accept": "application/json", "Content-Type": content_type},
                    body=body,
                    auth_settings=["BearerToken"],
                )
                answer = await self._client.call_api(*request, _preload_content=False)
                raw = await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.answers = False
            what = str(error) or type(error).__name__
            raise ClusterUnavailable(f"{method} {path}: {what}") from error
        self.answers = answer.status < 500
        return _read(f"{method} {path}", answer.status, answer.headers, raw)


def _read(what: str, status: int, headers: Mapping[str, str], raw: bytes) -> Object:
    if 200 <= status < 300:
        try:
            found = json.loads(raw)
        except ValueError as error:
            raise ClusterUnavailable(f"{what}: its answer is no JSON") from error
        return found if isinstance(found, dict) else {}
    message = f"{what}: {status} {_message(raw)}"
    if status in _TRY_AGAIN or status >= 500:
        raise ClusterUnavailable(message, _seconds(headers.get("Retry-After")))
    raise _REFUSALS.get(status, ClusterRefused)(message)


def _message(raw: bytes) -> str:
    try:
        return str(json.loads(raw)["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return raw[:200].decode(errors="replace")


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdecimal() else None


def _in(namespace: str) -> str:
    return f"/namespaces/{quote(namespace)}" if namespace else ""
