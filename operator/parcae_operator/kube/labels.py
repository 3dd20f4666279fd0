"""Names that the operator and its pods share."""

from __future__ import annotations

from typing import Any, NamedTuple

from parcae_api.job import API_VERSION, KIND, ParcaeJob

JOB = "parcae.dev/job"
"""Label of an agent pod: its job's name."""
JOB_UID = "parcae.dev/job-uid"
CONTAINER = "agent"
"""Name that a template's first container gets where it has none."""
SHARED_PATH = "/parcae"
"""A volume of every agent pod: records, and where the user's ConfigMap is mounted."""
LEDGER_PATH = f"{SHARED_PATH}/ledger"
ACCESS_PATH = "/var/run/parcae/board"
"""Where agent pods find what the board asks them for."""
CODE_PATH = f"{SHARED_PATH}/code"


class JobKey(NamedTuple):
    """A job as people name it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def job_of(obj: dict[str, Any]) -> JobKey:
    """The key of a job's own object."""
    metadata = obj.get("metadata") or {}
    return JobKey(str(metadata.get("namespace", "")), str(metadata.get("name", "")))


def owner_of(pod: dict[str, Any]) -> tuple[JobKey, str]:
    """The job of an agent pod by its labels, and that job's uid."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    key = JobKey(str(metadata.get("namespace", "")), str(labels.get(JOB, "")))
    return key, str(labels.get(JOB_UID, ""))


def owner_reference(job: ParcaeJob) -> dict[str, Any]:
    """With it an object goes when its job does; deleting the job does not wait for it."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def owned_metadata(job: ParcaeJob, name: str) -> dict[str, Any]:
    """Of an object that belongs to a job, lies beside it, and goes with it."""
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "labels": {
            "app.kubernetes.io/managed-by": "parcae",
            JOB: job.metadata.name,
            JOB_UID: job.metadata.uid,
        },
        "ownerReferences": [owner_reference(job)],
    }
