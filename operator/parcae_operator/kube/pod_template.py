"""The pod of an agent: the user's template with what an agent needs added. Pure.

What the user wrote stays. Added are identity, environment, one shared volume, defaults of security
that a restricted namespace asks for, and that two agents of a job keep to different nodes: an
instance is a node and the agent on it.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from parcae_api.errors import InputError
from parcae_api.job import ParcaeJob
from parcae_api.log_lines import VARIABLE, LogFormat
from parcae_operator.kube.board_users import secret_name
from parcae_operator.kube.labels import (
    ACCESS_PATH,
    CODE_PATH,
    CONTAINER,
    JOB,
    JOB_UID,
    LEDGER_PATH,
    SHARED_PATH,
    owner_reference,
)
from parcae_operator.kube.pod_metrics import add_metrics
from parcae_operator.kube.settings import OperatorSettings

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
_CONTAINER = "spec.template.spec.containers[0]"
_GRACE_S = 30
_SHARED, _CODE, _ACCESS = "parcae", "parcae-code", "parcae-board"
_EVICTION_S = 30
"""How long a pod stays bound to a node that is silent: its agent is given up after seconds."""


def check_template(job: ParcaeJob) -> None:
    """See that pods can be made of it.

    Raises:
        InputError: they cannot; the message names the field.
    """
    make_pod(job, "probe", agent_config={}, settings=None)


def make_pod(
    job: ParcaeJob,
    name: str,
    *,
    agent_config: Object,
    settings: OperatorSettings | None,
) -> Object:
    """An agent pod of a job.

    Args:
        job: Whose.
        name: Of the pod; never used before.
        agent_config: ``parcae_agent``'s settings, as JSON.
        settings: The operator's; None for its defaults.

    Raises:
        InputError: the template cannot work; the message names the field.
    """
    template = _object(copy.deepcopy(job.spec.template), "spec.template")
    metadata = _part(template, "metadata", "spec.template")
    spec = _part(template, "spec", "spec.template")
    container = _first_container(spec)
    _add_environment(container, agent_config, settings)
    add_metrics(spec, container)
    _add_volumes(job, spec, container)
    if settings is not None and settings.board_access is not None:
        _add_access(job, spec, container)
    _add_security(spec, container)
    _add_placement(job, spec)
    spec["restartPolicy"] = "Never"
    _default(spec, "automountServiceAccountToken", False)
    _default(spec, "enableServiceLinks", False)
    _default(spec, "terminationGracePeriodSeconds", grace_seconds(job, settings))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(job, name, metadata, container["name"]),
        "spec": spec,
    }


def _metadata(job: ParcaeJob, name: str, given: Object, container: str) -> Object:
    where = "spec.template.metadata"
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": {
            **_part(given, "labels", where),
            "app.kubernetes.io/name": "parcae-agent",
            "app.kubernetes.io/managed-by": "parcae",
            JOB: job.metadata.name,
            JOB_UID: job.metadata.uid,
        },
        "annotations": {
            **_part(given, "annotations", where),
            "kubectl.kubernetes.io/default-container": container,
        },
        "ownerReferences": [owner_reference(job)],
    }


def agent_config(job: ParcaeJob, pod: str, settings: OperatorSettings, grace_s: int) -> Object:
    """What an agent is told; the kubelet adds its node and address."""
    spec = job.spec.model_copy(update={"template": {}})
    return {
        "endpoints": list(settings.agent_endpoints),
        "access": ACCESS_PATH if settings.board_access is not None else None,
        "namespace": job.metadata.namespace,
        "job": job.metadata.name,
        "spec": spec.model_dump(mode="json"),
        "pod": pod,
        "node": "",
        "node_uid": "",
        "address": "",
        "grace_seconds": float(grace_s),
        "search_path": CODE_PATH if job.spec.entrypoint.config_map else None,
        "ledger": LEDGER_PATH,
        "checkpoints": job.spec.checkpoint.path,
        "device": "cuda:0" if wants_gpu(job) else "cpu",
    }


def grace_seconds(job: ParcaeJob, settings: OperatorSettings | None) -> int:
    """How long a pod has after its SIGTERM."""
    spec = job.spec.template.get("spec")
    given = spec.get("terminationGracePeriodSeconds") if isinstance(spec, dict) else None
    if given is None:
        return settings.grace_seconds if settings is not None else _GRACE_S
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        where = "spec.template.spec.terminationGracePeriodSeconds"
        raise InputError(f"{where}: is {given!r:.40}; give whole seconds")
    return given


def wants_gpu(job: ParcaeJob) -> bool:
    """Whether the template asks for a GPU."""
    spec = _part(copy.deepcopy(job.spec.template), "spec", "spec.template")
    return _gpus(_first_container(spec)) > 0


def _first_container(spec: Object) -> Object:
    containers = spec.get("containers")
    where = "spec.template.spec.containers"
    if not isinstance(containers, list) or not containers:
        raise InputError(f"{where}: is required; add one container with the training image")
    container = _object(containers[0], f"{where}[0]")
    if not isinstance(container.get("image"), str) or not container["image"]:
        raise InputError(f"{where}[0].image: is required; give the image that trains")
    _default(container, "name", CONTAINER)
    if not isinstance(container["name"], str):
        raise InputError(f"{where}[0].name: must be text, or left out")
    gpus = _gpus(container)
    if gpus > 1:
        raise InputError(
            f"{where}[0].resources: {gpus} {GPU} in one pod, but an agent runs one worker; ask for "
            "1, and for more pods with spec.instances.max"
        )
    return container


def _gpus(container: Object) -> int:
    resources = container.get("resources")
    found = 0
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) if isinstance(resources, dict) else None
        text = str(amounts.get(GPU, "0")) if isinstance(amounts, dict) else "0"
        found = max(found, int(text[:9]) if text.isdecimal() else 0)
    return found


def _add_environment(container: Object, config: Object, settings: OperatorSettings | None) -> None:
    ours: list[Object] = [
        {"name": "PARCAE_AGENT", "value": json.dumps(config, separators=(",", ":"))},
        _field("PARCAE_NODE_NAME", "spec.nodeName"),
        _field("PARCAE_ADDRESS", "status.podIP"),
    ]
    names = [entry["name"] for entry in ours]
    given = _list(container, "env", f"{_CONTAINER}.env")
    theirs = [e for e in given if not (isinstance(e, dict) and e.get("name") in names)]
    container["env"] = [*theirs, *ours]
    chosen = any(isinstance(e, dict) and e.get("name") == VARIABLE for e in theirs)
    if settings is not None and settings.log_format is not LogFormat.TEXT and not chosen:
        container["env"].append({"name": VARIABLE, "value": settings.log_format.value})


def _add_volumes(job: ParcaeJob, spec: Object, container: Object) -> None:
    """A place for records, unless the template mounts one there, and the user's ConfigMap."""
    volumes = _list(spec, "volumes", "spec.template.spec.volumes")
    mounts = _list(container, "volumeMounts", f"{_CONTAINER}.volumeMounts")
    taken = {str(m.get("mountPath", "")).rstrip("/") for m in mounts if isinstance(m, dict)}
    if SHARED_PATH not in taken:
        volumes.append({"name": _SHARED, "emptyDir": {}})
        mounts.append({"name": _SHARED, "mountPath": SHARED_PATH})
    if job.spec.entrypoint.config_map:
        volumes.append({"name": _CODE, "configMap": {"name": job.spec.entrypoint.config_map}})
        mounts.append({"name": _CODE, "mountPath": CODE_PATH, "readOnly": True})
    path = job.spec.checkpoint.path
    if path is not None and not any(Path(path).is_relative_to(m) for m in taken if m):
        raise InputError(
            f"spec.checkpoint.path: {path} lies on no volume of the template, so it would be lost "
            "with its pod; mount a volume that all nodes reach there"
        )


def _add_access(job: ParcaeJob, spec: Object, container: Object) -> None:
    """The Secret with which the board lets the agent in; files, so that no environment shows it."""
    volumes = _list(spec, "volumes", "spec.template.spec.volumes")
    mounts = _list(container, "volumeMounts", f"{_CONTAINER}.volumeMounts")
    volumes.append({"name": _ACCESS, "secret": {"secretName": secret_name(job)}})
    mounts.append({"name": _ACCESS, "mountPath": ACCESS_PATH, "readOnly": True})


def _add_security(spec: Object, container: Object) -> None:
    """What a namespace with Pod Security `restricted` asks for, where the user says nothing."""
    pod = _part(spec, "securityContext", "spec.template.spec")
    _default(pod, "runAsNonRoot", True)
    _default(pod, "seccompProfile", {"type": "RuntimeDefault"})
    own = _part(container, "securityContext", _CONTAINER)
    _default(own, "allowPrivilegeEscalation", False)
    _default(own, "capabilities", {"drop": ["ALL"]})


def _add_placement(job: ParcaeJob, spec: Object) -> None:
    affinity = _part(spec, "affinity", "spec.template.spec")
    _default(
        affinity,
        "podAntiAffinity",
        {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {JOB_UID: job.metadata.uid}},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        },
    )
    tolerations = _list(spec, "tolerations", "spec.template.spec.tolerations")
    known = [t.get("key") for t in tolerations if isinstance(t, dict)]
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if key not in known:
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _EVICTION_S,
                }
            )


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _object(value: Any, where: str) -> Object:
    if not isinstance(value, dict):
        raise InputError(f"{where}: must be an object, but it is {type(value).__name__}")
    return value


def _part(parent: Object, name: str, where: str) -> Object:
    """The object under that name; where there is none, an empty one is put there."""
    return _object(_default(parent, name, {}), f"{where}.{name}")


def _default(parent: Object, name: str, value: Any) -> Any:
    """What is under that name, else this, put there. Null says nothing, as in all of Kubernetes."""
    if parent.get(name) is None:
        parent[name] = value
    return parent[name]


def _list(parent: Object, name: str, where: str) -> list[Any]:
    value = _default(parent, name, [])
    if not isinstance(value, list):
        raise InputError(f"{where}: must be a list, but it is {type(value).__name__}")
    return value
