"""A small client of the API server, for the library's own reads, writes and waits.

It needs no forwarder and no package, and says "not yet" (an error that ``until`` takes as such)
while the API server is down.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import ClusterError
from .layout import API_PORT, GATEWAY
from .namespaces import Network

TIMEOUT_S = 10.0
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class ApiError(ClusterError):
    """The API server said no.

    Args:
        status: the HTTP status; 0 where no answer came.
        message: what was asked for and what was answered.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Inside(http.client.HTTPConnection):
    """A connection whose socket belongs to a network namespace."""

    def __init__(
        self, network: Network, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(host, port, timeout=timeout_s)
        self._network = network
        self._tls = tls

    def connect(self) -> None:
        raw = self._network.socket()
        try:
            raw.settimeout(self.timeout)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.connect((self.host, self.port))
            self.sock = self._tls.wrap_socket(raw, server_hostname=self.host) if self._tls else raw
        except BaseException:
            raw.close()
            raise


def request(
    network: Network,
    host: str,
    port: int,
    method: str,
    path: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    timeout_s: float = TIMEOUT_S,
) -> tuple[int, bytes]:
    """Makes one HTTP request from inside a network namespace; returns status and body.

    Raises:
        ApiError: no answer came (status 0).
    """
    connection = _Inside(network, host, port, timeout_s, tls)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ApiError(0, f"{method} {host}:{port}{path}: {error!r}") from error
    finally:
        connection.close()


def healthy(network: Network, port: int, path: str, *, https: bool = False) -> bool:
    """Says whether a server on the namespace's loopback answers 200. Its certificate is not read.

    Raises:
        ApiError: it does not answer.
    """
    tls = ssl._create_unverified_context() if https else None
    status, _ = request(network, "127.0.0.1", port, "GET", path, tls=tls)
    return status == 200


class Api:
    """Requests to the API server as an administrator.

    Args:
        network: the cluster's network namespace.
        keys: the folder with ``ca.crt``, ``admin.crt`` and ``admin.key``.
    """

    def __init__(self, network: Network, keys: Path) -> None:
        self._network = network
        self._keys = keys
        self._context: ssl.SSLContext | None = None

    def request(
        self, method: str, path: str, data: object = None, kind: str = "application/json"
    ) -> Any:
        """Makes a request; returns the JSON of the answer, or its text where it is no JSON.

        Raises:
            ApiError: the answer was an error, or none came.
        """
        if self._context is None:
            self._context = ssl.create_default_context(cafile=str(self._keys / "ca.crt"))
            self._context.load_cert_chain(self._keys / "admin.crt", self._keys / "admin.key")
        status, body = request(
            self._network,
            GATEWAY,
            API_PORT,
            method,
            path,
            body=None if data is None else json.dumps(data).encode(),
            headers={"Content-Type": kind, "Accept": "application/json, */*"},
            tls=self._context,
        )
        text = body.decode(errors="replace")
        if status >= 300:
            raise ApiError(status, f"{method} {path}: {status} {text[:1000]}")
        return json.loads(text) if text[:1] in ("{", "[") else text

    def get(self, path: str) -> Any:
        """Reads, as in ``get("/api/v1/nodes/a")``."""
        return self.request("GET", path)

    def find(self, path: str) -> Any | None:
        """Reads, and returns None where there is no such object."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path: str, data: object) -> Any:
        """Creates an object in a collection, as in ``create("/api/v1/namespaces", {…})``."""
        return self.request("POST", path, data)

    def patch(self, path: str, data: object, kind: str = STRATEGIC) -> Any:
        """Changes an object by a patch."""
        return self.request("PATCH", path, data, kind)

    def delete(self, path: str, *, now: bool = False) -> None:
        """Deletes an object, or all of a collection; ``now``: without grace.

        Nothing happens where it is gone.
        """
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        try:
            self.request("DELETE", path, {**options, "gracePeriodSeconds": 0} if now else options)
        except ApiError as error:
            if error.status != 404:
                raise
