"""``parcae render``: the pods that a manifest makes, as YAML; no cluster is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
import yaml

from parcae_api.errors import InputError
from parcae_api.job import MAX_INSTANCES, ParcaeJob, load_job
from parcae_operator.kube.pod_template import agent_config, grace_seconds, make_pod
from parcae_operator.kube.settings import OperatorSettings

_PLACEHOLDER_UID = "00000000-0000-0000-0000-000000000000"
_SETTINGS = OperatorSettings(board="http://parcae-etcd:2379", identity="render")


def render(
    manifest: Annotated[Path, typer.Argument(help="A ParcaeJob manifest.", metavar="JOB.yaml")],
    pods: Annotated[
        int, typer.Option("--pods", help="How many to show.", min=1, max=MAX_INSTANCES)
    ] = 1,
) -> None:
    """Print the pods that the operator would make of a job, to see what it adds."""
    job = load_job(manifest)
    try:
        made = [_pod(job, number) for number in range(pods)]
    except InputError as error:
        raise InputError(f"{manifest}: {error}") from error
    print("# Placeholders: names of pods, the job's uid, and etcd's address (in PARCAE_AGENT).")
    print(yaml.safe_dump_all(made, sort_keys=False, width=2**20, allow_unicode=True), end="")


def _pod(job: ParcaeJob, number: int) -> dict[str, object]:
    metadata = job.metadata.model_copy(update={"uid": job.metadata.uid or _PLACEHOLDER_UID})
    job = job.model_copy(update={"metadata": metadata})
    name = f"{job.metadata.name}-{number:06d}"
    config = agent_config(job, name, _SETTINGS, grace_seconds(job, _SETTINGS))
    return make_pod(job, name, agent_config=config, settings=_SETTINGS)
