"""Reading and writing the ParcaeJob object. Pure."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from parcae_api.errors import InputError
from parcae_api.job import API_VERSION, KIND, ParcaeJob, explain
from parcae_api.job_status import JobStatus
from parcae_operator.kube.pod_template import check_template

Object = dict[str, Any]


def read_job(body: Object) -> ParcaeJob:
    """The job as the user wants it.

    Raises:
        InputError: it cannot work; the message names field, value and remedy.
    """
    metadata = body.get("metadata") or {}
    known = ("name", "namespace", "labels", "uid", "generation")
    try:
        job = ParcaeJob.model_validate(
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {name: metadata[name] for name in known if metadata.get(name)},
                "spec": body.get("spec"),
            }
        )
    except ValidationError as error:
        raise InputError(explain(error)) from error
    except RecursionError:
        raise InputError("spec: is nested too deeply; flatten it") from None
    check_template(job)
    return job


def read_status(body: Object) -> JobStatus:
    """The status as it was last written; an empty one where nothing of ours can be read."""
    try:
        return JobStatus.model_validate(body.get("status") or {})
    except ValidationError:
        return JobStatus()


def dump_status(status: JobStatus) -> Object:
    """As it is sent; what is absent is removed on the server."""
    dumped: Object = status.model_dump(mode="json", by_alias=True)
    return dumped


def identity(body: Object) -> tuple[str, int]:
    """(uid, generation): what tells one spec from another."""
    metadata = body.get("metadata") or {}
    return str(metadata.get("uid", "")), int(metadata.get("generation") or 0)
