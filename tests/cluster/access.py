"""How tests and programs get at a running cluster: kubectl, Helm, the API, programs inside."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from . import toolchain
from .processes import Process
from .programs import run
from .site import Site
from .waiting import until


class Access:
    """What can be done with a cluster that somebody started."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.api = site.api

    @property
    def name(self) -> str:
        """Its name."""
        return self.site.files.name

    @property
    def folder(self) -> Path:
        """The folder of all its files; ``logs/`` has the control plane's logs."""
        return self.site.files.folder

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig for programs of this machine, outside the cluster."""
        return self.site.files.kubeconfig("outside")

    @property
    def kubeconfig_inside(self) -> Path:
        """An administrator's kubeconfig for programs in the cluster's network (``inside``)."""
        return self.site.files.kubeconfig("admin")

    def kubectl(self, *arguments: str, input: str | None = None, bound_s: float = 120) -> str:
        """Runs kubectl as an administrator, and returns its output.

        Raises:
            ProgramFailed: with what it said.
        """
        argv: list[str | Path] = [
            self.site.tools.kubectl,
            f"--kubeconfig={self.kubeconfig_inside}",
            *arguments,
        ]
        return run(self.site.network.argv(argv), input=input, bound_s=bound_s).stdout

    def helm(self, *arguments: str, bound_s: float = 300) -> str:
        """Runs Helm as an administrator, and returns its output. It is built in the first use.

        Raises:
            ProgramFailed: with what it said.
        """
        return self.inside([toolchain.helm(), *arguments], bound_s=bound_s).stdout

    def apply(self, *objects: Any) -> None:
        """Applies objects that are given as data."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", input=json.dumps(listed))

    def exec(self, pod: str, *argv: str, namespace: str = "default", bound_s: float = 60) -> str:
        """Runs a program in a pod, and returns its output."""
        return self.kubectl("exec", "-n", namespace, pod, "--", *argv, bound_s=bound_s)

    def wait_pod(self, name: str, namespace: str = "default", bound_s: float = 120) -> Any:
        """Returns a pod when it is Ready."""
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"

        def ready() -> Any:
            pod = self.api.find(path)
            conditions = (pod or {}).get("status", {}).get("conditions", [])
            return (
                pod
                if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
                else None
            )

        return until(f"pod {namespace}/{name} to be Ready", ready, bound_s=bound_s)

    def inside(
        self, argv: Sequence[str | Path], *, bound_s: float = 60, check: bool = True
    ) -> CompletedProcess[str]:
        """Runs a program to its end in the cluster's network, with an administrator's KUBECONFIG.

        From there all pods, Services and (with the resolver set so) names can be reached.
        """
        environment = ["env", f"KUBECONFIG={self.kubeconfig_inside}"]
        return self.site.network.run([*environment, *argv], bound_s=bound_s, check=check)

    def start_inside(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> Process:
        """Starts a program in the cluster's network; it ends with the cluster at the latest.

        Args:
            name: names its pid file and its log, ``logs/own-NAME.log``.
            argv: the program and its arguments.
            env: its environment, with KUBECONFIG added; this process's without.
        """
        files = self.site.files
        process = Process(files.pids / f"own-{name}.pid", files.logs / f"own-{name}.log")
        environment = {**(os.environ if env is None else env)}
        environment["KUBECONFIG"] = str(self.kubeconfig_inside)
        process.start(self.site.network.argv(argv), environment)
        return process
