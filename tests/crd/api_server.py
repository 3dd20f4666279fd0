"""An API server that knows ParcaeJobs: requests, and what it says to them."""

from __future__ import annotations

import os
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from pydantic import ValidationError

from parcae_api.crd import CRD_FILE
from parcae_api.job import ParcaeJob, explain

ROOT = Path(__file__).resolve().parents[2]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/parcae.dev/v1alpha1/namespaces/default/parcaejobs"
MERGE = "application/merge-patch+json"

Object = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    status: int
    body: Object
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status < 300

    @property
    def refusals(self) -> list[tuple[str, str]]:
        """(field, message) of everything that was wrong, by field."""
        causes = self.body.get("details", {}).get("causes", [])
        return sorted((cause.get("field", ""), cause["message"]) for cause in causes)


class Server:
    """The server that a kubeconfig names."""

    def __init__(self, kubeconfig: Path, kubectl: Path) -> None:
        self._kubeconfig, self._kubectl = kubeconfig, kubectl
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        context.load_cert_chain(user["client-certificate"], user["client-key"])
        self._client = httpx.Client(base_url=cluster["server"], verify=context, timeout=30)

    def close(self) -> None:
        self._client.close()

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str = "application/json",
        **query: str,
    ) -> Answer:
        headers = {"Content-Type": kind}
        answer = self._client.request(method, path, json=body, headers=headers, params=query)
        warnings = tuple(answer.headers.get_list("warning"))
        return Answer(answer.status_code, answer.json(), warnings)

    def try_out(self, job: object) -> Answer:
        """What it would say to that job; unknown fields are errors, as with kubectl."""
        return self.send("POST", JOBS, job, dryRun="All", fieldValidation="Strict")

    def create(self, job: Object) -> Object:
        answer = self.send("POST", JOBS, job, fieldValidation="Strict")
        assert answer.ok, answer.body
        return answer.body

    def change(self, name: str, patch: Object, part: str = "", **query: str) -> Answer:
        return self.send("PATCH", f"{JOBS}/{name}{part}", patch, MERGE, **query)

    def kubectl(self, *arguments: str | Path, check: bool = True) -> str:
        done = subprocess.run(
            [self._kubectl, *arguments],
            env={**os.environ, "KUBECONFIG": str(self._kubeconfig)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done.stdout + done.stderr

    def install_crd(self) -> None:
        self.kubectl("apply", "-f", CRD_FILE)
        name = "parcaejobs.parcae.dev"
        self.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")


def job(name: str = "gpt", **spec: Any) -> Object:
    """The smallest job, with these parts of its spec."""
    small = {"instances": {"max": 4}, "entrypoint": {"function": "gpt:gpt"}}
    return {
        "apiVersion": "parcae.dev/v1alpha1",
        "kind": "ParcaeJob",
        "metadata": {"name": name},
        "spec": small | spec,
    }


def as_read(body: Object) -> Object:
    """The object with those of Kubernetes' metadata that the model knows, as the operator does."""
    known = ("name", "namespace", "labels", "annotations", "uid", "generation")
    metadata = {name: body["metadata"][name] for name in known if name in body["metadata"]}
    return {**body, "metadata": metadata}


def python_says(document: Object) -> str | None:
    """The sentence with which the models refuse a document, without the field."""
    try:
        ParcaeJob.model_validate(document)
    except ValidationError as error:
        return explain(error).partition(": ")[2]
    return None
