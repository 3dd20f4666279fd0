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
from parcae_api.job import API_VERSION, KIND, ParcaeJob
from parcae_operator.kube.labels import CODE_PATH, CONTAINER, JOB, JOB_UID, LEDGER_PATH, SHARED_PATH
from parcae_operator.kube.settings import OperatorSettings

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
_SHARED, _CODE = "parcae", "parcae-code"
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
    metadata = _object(template.get("metadata", {}), "spec.template.metadata")
    spec = _object(template.get("spec", {}), "spec.template.spec")
    container = _first_container(spec)
    _add_environment(container, agent_config)
    _add_volumes(job, spec, container)
    _add_security(spec, container)
    _add_placement(job, spec)
    spec["restartPolicy"] = "Never"
    spec.setdefault("automountServiceAccountToken", False)
    spec.setdefault("enableServiceLinks", False)
    spec.setdefault("terminationGracePeriodSeconds", settings.grace_seconds if settings else 30)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": job.metadata.namespace,
            "labels": {
                **_object(metadata.get("labels", {}), "spec.template.metadata.labels"),
                "app.kubernetes.io/name": "parcae-agent",
                "app.kubernetes.io/managed-by": "parcae",
                JOB: job.metadata.name,
                JOB_UID: job.metadata.uid,
            },
            "annotations": {
                **_object(metadata.get("annotations", {}), "spec.template.metadata.annotations"),
                "kubectl.kubernetes.io/default-container": container["name"],
            },
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "name": job.metadata.name,
                    "uid": job.metadata.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": spec,
    }


def agent_config(job: ParcaeJob, pod: str, settings: OperatorSettings, grace_s: int) -> Object:
    """What an agent is told; the kubelet adds its node and address."""
    spec = job.spec.model_copy(update={"template": {}})
    return {
        "endpoints": list(settings.agent_endpoints),
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


def grace_seconds(job: ParcaeJob, settings: OperatorSettings) -> int:
    """How long a pod has after its SIGTERM."""
    spec = job.spec.template.get("spec")
    given = spec.get("terminationGracePeriodSeconds") if isinstance(spec, dict) else None
    return given if isinstance(given, int) else settings.grace_seconds


def wants_gpu(job: ParcaeJob) -> bool:
    """Whether the template asks for a GPU."""
    container = _first_container(_object(job.spec.template.get("spec", {}), "spec.template.spec"))
    return _gpus(container) > 0


def _first_container(spec: Object) -> Object:
    containers = spec.get("containers")
    where = "spec.template.spec.containers"
    if not isinstance(containers, list) or not containers:
        raise InputError(f"{where}: is required; add one container with the training image")
    container = _object(containers[0], f"{where}[0]")
    if not isinstance(container.get("image"), str) or not container["image"]:
        raise InputError(f"{where}[0].image: is required; give the image that trains")
    container.setdefault("name", CONTAINER)
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
        found = max(found, int(text) if text.isdigit() else 0)
    return found


def _add_environment(container: Object, config: Object) -> None:
    ours: list[Object] = [
        {"name": "PARCAE_AGENT", "value": json.dumps(config, separators=(",", ":"))},
        _field("PARCAE_NODE_NAME", "spec.nodeName"),
        _field("PARCAE_ADDRESS", "status.podIP"),
    ]
    names = {entry["name"] for entry in ours}
    given = container.get("env", [])
    if not isinstance(given, list):
        raise InputError("spec.template.spec.containers[0].env: must be a list of names and values")
    theirs = [e for e in given if not (isinstance(e, dict) and e.get("name") in names)]
    container["env"] = [*theirs, *ours]


def _add_volumes(job: ParcaeJob, spec: Object, container: Object) -> None:
    """A place for records, unless the template mounts one there, and the user's ConfigMap."""
    volumes = _list(spec, "volumes", "spec.template.spec.volumes")
    mounts = _list(container, "volumeMounts", "spec.template.spec.containers[0].volumeMounts")
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


def _add_security(spec: Object, container: Object) -> None:
    """What a namespace with Pod Security `restricted` asks for, where the user says nothing."""
    pod = _object(spec.setdefault("securityContext", {}), "spec.template.spec.securityContext")
    pod.setdefault("runAsNonRoot", True)
    pod.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    where = "spec.template.spec.containers[0].securityContext"
    own = _object(container.setdefault("securityContext", {}), where)
    own.setdefault("allowPrivilegeEscalation", False)
    own.setdefault("capabilities", {"drop": ["ALL"]})


def _add_placement(job: ParcaeJob, spec: Object) -> None:
    where = "spec.template.spec.affinity"
    affinity = _object(spec.setdefault("affinity", {}), where)
    affinity.setdefault(
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
    known = {t.get("key") for t in tolerations if isinstance(t, dict)}
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


def _list(parent: Object, name: str, where: str) -> list[Any]:
    value = parent.setdefault(name, [])
    if not isinstance(value, list):
        raise InputError(f"{where}: must be a list, but it is {type(value).__name__}")
    return value
