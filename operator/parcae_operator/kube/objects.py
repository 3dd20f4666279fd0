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
    metadata = _metadata(body)
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
        return JobStatus.model_validate(body.get("status") or {}, extra="ignore")
    except ValidationError:
        return JobStatus()


def dump_status(status: JobStatus) -> Object:
    """As it is sent; what is absent is removed on the server."""
    dumped: Object = status.model_dump(mode="json", by_alias=True)
    return dumped


def identity(body: Object) -> tuple[str, int]:
    """(uid, generation): what tells one spec from another."""
    metadata = _metadata(body)
    generation = metadata.get("generation")
    return str(metadata.get("uid", "")), generation if isinstance(generation, int) else 0


def is_older(body: Object, than: Object) -> bool:
    """Whether a job's object was read before another reading of it."""
    return _version(body) < _version(than)


def _version(body: Object) -> int:
    text = str(_metadata(body).get("resourceVersion", ""))
    return int(text) if text.isdecimal() else 0


def _metadata(body: Object) -> Object:
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}
