"""Programs built from Go modules, each once: Kubernetes, CoreDNS, Helm, kube-router and others.

A program's folder is named after its sources, so a changed ``go.mod`` is built anew and an
unchanged one never.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .errors import ClusterError
from .places import HERE, cache, key, once
from .programs import run

KUBERNETES = "1.36.3"
HELM = "helm.sh/helm/v4/cmd/helm@v4.3.2"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.80.1"
KUBE_ROUTER = "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v2.1.0"
COMPONENTS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "etcd",
)
BUILD_BOUND_S = 3000.0  # a cold build of Kubernetes takes minutes on two cores, tens when shared
FLAGS = ["-trimpath", "-buildvcs=false"]


@dataclass(frozen=True)
class Toolchain:
    """Where the built programs are."""

    kube: Path
    """A folder with all of ``COMPONENTS``, which are one program under six names."""
    kubectl: Path
    coredns: Path


def ensure() -> Toolchain:
    """Builds what is missing (minutes when cold, no time when warm) and says where it is.

    Raises:
        ClusterError: there is no Go, or a build failed.
    """
    return Toolchain(
        kube=_module("kube", ".", "kube", stamp=True, names=COMPONENTS),
        kubectl=_module("kube", "k8s.io/kubernetes/cmd/kubectl", "kubectl", stamp=True) / "kubectl",
        coredns=_module("dns", ".", "coredns") / "coredns",
    )


def pause() -> Path:
    """Builds the program that a pod's first container runs, and says where it is."""
    return _module("pause", ".", "pause") / "pause"


def _go() -> str:
    if found := shutil.which("go"):
        return found
    raise ClusterError("Go is not in PATH: the test cluster's programs are built with it")


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0"}


def _linker_flags(stamp: bool) -> str:
    """Strips debug data and, for Kubernetes, writes the version that it reports into it."""
    if not stamp:
        return "-s -w"
    major, minor, _ = KUBERNETES.split(".")
    values = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    stamps = [
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in values.items()
    ]
    return " ".join(["-s -w", *stamps])


def _module(
    folder: str, package: str, program: str, *, stamp: bool = False, names: tuple[str, ...] = ()
) -> Path:
    """Builds a package of one of our modules; ``names`` are further names of its program."""
    source = HERE / folder
    files = sorted([*source.glob("*.go"), *source.glob("go.*")])
    flags = _linker_flags(stamp)

    def make(target: Path) -> None:
        argv = [_go(), "build", "-mod=readonly", *FLAGS, f"-ldflags={flags}"]
        run(
            [*argv, "-o", target / program, package],
            cwd=source,
            env=_environment(),
            bound_s=BUILD_BOUND_S,
        )
        for name in names:
            (target / name).symlink_to(program)

    return once(cache() / "go" / f"{program}-{key(flags, package, *files)}", make)


def helm() -> Path:
    """Builds Helm, which only some need, and says where it is."""
    return _install(HELM)


def kube_router() -> Path:
    """Builds kube-router, which holds network policies up, and says where it is."""
    return _install(KUBE_ROUTER)


def prometheus_kinds() -> list[Path]:
    """Downloads the Prometheus operator's kinds, as files to apply, and says where they are."""

    def make(target: Path) -> None:
        said = run(
            [_go(), "mod", "download", "-json", PROMETHEUS_OPERATOR],
            env=_environment(),
            cwd=target,
            bound_s=BUILD_BOUND_S,
        ).stdout
        files = Path(json.loads(said)["Dir"], "example", "prometheus-operator-crd")
        for name in ("podmonitors", "prometheusrules"):
            shutil.copy(files / f"monitoring.coreos.com_{name}.yaml", target)

    return sorted(once(cache() / "go" / f"kinds-{key(PROMETHEUS_OPERATOR)}", make).iterdir())


def _install(package: str) -> Path:
    """Builds a program of a module that is not ours."""
    name = package.partition("@")[0].rsplit("/", 1)[-1]

    def make(target: Path) -> None:
        run(
            [_go(), "install", *FLAGS, "-ldflags=-s -w", package],
            env={**_environment(), "GOBIN": str(target)},
            cwd=target,  # outside any module, so that the version asked for is what counts
            bound_s=BUILD_BOUND_S,
        )

    return once(cache() / "go" / f"{name}-{key(package)}", make) / name
