"""Reads ParcaeJobs, and what belongs to them, from the cluster of the user's kubeconfig.

Every failure is one sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parcae_api.errors import InputError
from parcae_operator.kube.errors import (
    ClusterError,
    ClusterRefused,
    ClusterUnavailable,
    Forbidden,
    NotFound,
)

Object = dict[str, Any]
_GROUP, _VERSION, _PLURAL = "parcae.dev", "v1alpha1", "parcaejobs"
_TIMEOUT_S = 10.0


class JobReader:
    """The API server as the user reaches it.

    Args:
        kubeconfig: A file; None: as kubectl would.
        context: One of its contexts; None: the current one.
        namespace: Of jobs; None: the context's.

    Raises:
        InputError: there is no kubeconfig that works, or the Python package is missing.
    """

    def __init__(
        self,
        *,
        kubeconfig: Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
    ) -> None:
        try:
            from kubernetes import client
        except ImportError as error:
            raise InputError(
                "the Python package kubernetes is not installed; pip install 'parcae-k8s[operator]'"
            ) from error
        configuration = client.Configuration()
        own = _connect(configuration, kubeconfig, context)
        configuration.retries = 0
        self.namespace = namespace or own
        self._host = configuration.host
        connection = client.ApiClient(configuration)
        self._api = client.CustomObjectsApi(connection)
        self._core = client.CoreV1Api(connection)

    def job(self, name: str) -> Object:
        """A ParcaeJob, as it is now.

        Raises:
            NotFound: there is none of that name.
            ClusterError: it cannot be read; the message says why, and what to do.
        """
        from kubernetes.client.exceptions import ApiException

        try:
            found = self._api.get_namespaced_custom_object(
                _GROUP, _VERSION, self.namespace, _PLURAL, name, _request_timeout=_TIMEOUT_S
            )
        except ApiException as error:
            raise self._refusal(name, error.status, error.body) from error
        except Exception as error:  # urllib3's, ssl's, and those of programs that give credentials
            why = _shortest(error)
            raise ClusterUnavailable(
                f"the API server at {self._host} does not answer: {why}"
            ) from error
        if not isinstance(found, dict):
            raise ClusterUnavailable(f"the API server at {self._host} gave an answer without sense")
        return found

    def pods(self, namespace: str | None, selector: str) -> list[Object]:
        """Pods by their labels, of one namespace or of all.

        Raises:
            ClusterError: they cannot be read; the message says why.
        """
        where = "all namespaces" if namespace is None else f"namespace {namespace}"
        more = {"label_selector": selector}
        if namespace is None:
            return self._list(self._core.list_pod_for_all_namespaces, f"pods of {where}", **more)
        more["namespace"] = namespace
        return self._list(self._core.list_namespaced_pod, f"pods of {where}", **more)

    def events(self, kind: str, name: str) -> list[Object]:
        """Events on an object.

        Raises:
            ClusterError: they cannot be read; the message says why.
        """
        return self._list(
            self._core.list_namespaced_event,
            f"Events of namespace {self.namespace}",
            namespace=self.namespace,
            field_selector=f"involvedObject.kind={kind},involvedObject.name={name}",
        )

    def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        since_s: float | None,
        *,
        previous: bool = False,
    ) -> str:
        """What a pod's container has written, as far as it is kept; each line behind its time.

        Raises:
            ClusterError: it cannot be read; the message says why.
        """
        more: dict[str, Any] = {} if since_s is None else {"since_seconds": math.ceil(since_s)}
        raw = self._read(
            self._core.read_namespaced_pod_log,
            f"the log of pod {namespace}/{pod}",
            name=pod,
            namespace=namespace,
            container=container,
            previous=previous,
            timestamps=True,
            **more,
        )
        return raw.decode(errors="replace")

    def _list(self, call: Callable[..., Any], what: str, **arguments: Any) -> list[Object]:
        try:
            items = json.loads(self._read(call, what, **arguments))["items"]
        except (ValueError, KeyError, TypeError):
            items = None
        if not isinstance(items, list):
            raise ClusterUnavailable(f"the API server at {self._host} gave an answer without sense")
        return items

    def _read(self, call: Callable[..., Any], what: str, **arguments: Any) -> bytes:
        from kubernetes.client.exceptions import ApiException

        try:
            # As it comes: models of the client refuse what newer servers leave out.
            reply = call(**arguments, _preload_content=False, _request_timeout=_TIMEOUT_S)
            return bytes(reply.data)
        except ApiException as error:
            said = str(_status_object(error.body).get("message") or "").strip()
            why = said or f"status {error.status}"
            if error.status in (401, 403):
                raise Forbidden(f"the API server does not let you read {what}: {why}") from error
            if error.status in (400, 404):
                raise NotFound(f"{what}: {why}") from error
            raise ClusterUnavailable(
                f"the API server at {self._host} answers with an error: {why}"
            ) from error
        except Exception as error:
            raise ClusterUnavailable(
                f"the API server at {self._host} does not answer: {_shortest(error)}"
            ) from error

    def _refusal(self, name: str, status: object, body: object) -> ClusterError:
        said = _status_object(body)
        message = str(said.get("message") or "").strip() or f"status {status}"
        if status == 404 and said.get("reason") == "NotFound" and said.get("details"):
            return NotFound(
                f"{name}: there is no ParcaeJob of that name in namespace {self.namespace}; "
                "`kubectl get parcaejobs -A` lists those that there are"
            )
        if status == 404:
            return ClusterRefused(
                "this cluster knows no ParcaeJobs: the custom resource definition is not "
                "installed; install Parcae's chart, or apply crds/parcae.dev_parcaejobs.yaml"
            )
        if status in (401, 403):
            return Forbidden(
                f"the API server does not let you read ParcaeJob {self.namespace}/{name}: {message}"
            )
        return ClusterUnavailable(
            f"the API server at {self._host} answers with an error: {message}"
        )


def _connect(configuration: Any, kubeconfig: Path | None, context: str | None) -> str:
    """Fill the configuration in; the namespace that goes with it."""
    from kubernetes import config

    path = None if kubeconfig is None else str(kubeconfig)
    try:
        config.load_kube_config(
            config_file=path, context=context, client_configuration=configuration
        )
        contexts, active = config.list_kube_config_contexts(config_file=path)
        named = next((c for c in contexts if c["name"] == context), active)
        return str(named["context"].get("namespace") or "default")
    except Exception as error:  # YAML's, the file system's: a kubeconfig may hold anything
        why = _shortest(error)
    if kubeconfig is None and context is None:
        try:
            config.load_incluster_config(client_configuration=configuration)
            return _own_namespace()
        except config.ConfigException:
            pass
    raise InputError(
        f"no cluster: {kubeconfig or 'the kubeconfig'} cannot be used ({why}); set KUBECONFIG or "
        "give --kubeconfig and --context"
    )


def _own_namespace() -> str:
    try:
        return Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text().strip()
    except OSError:
        return "default"


def _status_object(body: object) -> Object:
    try:
        found = json.loads(body) if isinstance(body, str | bytes) else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _shortest(error: BaseException) -> str:
    """What is at the bottom of it, in one line."""
    while (below := getattr(error, "reason", None) or error.__cause__) is not None:
        if not isinstance(below, BaseException):
            break
        error = below
    words = " ".join(str(error).split())
    return (words.rpartition(": ")[2] if "object at 0x" in words else words)[:200] or type(
        error
    ).__name__


def check_name(name: str) -> None:
    """See that it can be asked for.

    Raises:
        InputError: no object has such a name.
    """
    if not name or "/" in name or not name.isprintable() or name in (".", ".."):
        raise InputError(f"NAME: {name!r} cannot be the name of a job; namespaces go to -n")
