"""Container images without a registry: built by buildah, handed to nodes as archives.

``FROM python:3.11-slim`` in a Dockerfile resolves to a base image made here from Debian's packages
(Debian 12 has Python 3.11), so a Dockerfile needs no change to be built where no registry answers.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from . import archive, debs, toolchain
from .places import cache, key, locked, once
from .programs import run

PAUSE = "registry.k8s.io/pause:3.10"
PYTHON = "docker.io/library/python:3.11-slim"
BUILD_BOUND_S = 1800.0
KEPT_ARCHIVES = 12
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_SETTINGS = Path("/etc/pip.conf")

_BASE = [
    "--variant=apt",
    "--include=python3,python3-pip,ca-certificates",
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    # As in the image of that name: pip may install, and there is a `python`.
    '--customize-hook=rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED',
    '--customize-hook=ln -s python3 "$1"/usr/bin/python',
    '--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*',
]
_BASE_SETTINGS = [
    "--env=PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
    "--env=LANG=C.UTF-8",
    "--cmd=python3",
]


def pause() -> Path:
    """Returns the archive of the image that holds a pod's namespaces open."""
    program = toolchain.pause()

    def make(target: Path) -> None:
        (target / "pause.tar").write_bytes(archive.one_program(program, PAUSE))

    return once(_folder() / f"pause-{key(program, PAUSE)}", make) / "pause.tar"


def python() -> Path:
    """Returns the archive of the base image, ``python:3.11-slim`` (made in about 40 s)."""
    _ensure_base()
    return _archive(PYTHON)


def build(
    context: Path,
    tag: str,
    *,
    dockerfile: Path | None = None,
    target: str | None = None,
    arguments: Mapping[str, str] | None = None,
    mounts: Mapping[Path, str] | None = None,
) -> Path:
    """Builds an image and returns its archive; what did not change is taken from the last time.

    Args:
        context: the folder that COPY copies from.
        tag: the image's name, such as ``parcae-operator:test``. Not ``:latest``, which Kubernetes
            would want to pull.
        dockerfile: ``Dockerfile`` in the context without.
        target: the stage to stop at; the last one without.
        arguments: build arguments.
        mounts: folders of the machine that RUN sees, and where; they are no part of the image.

    Raises:
        ProgramFailed: with what buildah said.
    """
    _ensure_base()
    options = [f"--build-arg={name}={value}" for name, value in (arguments or {}).items()]
    if target:
        options.append(f"--target={target}")
    for source, place in (mounts or {}).items():
        options.append(f"--volume={source}:{place}:ro")
    for settings in (CERTIFICATES, PIP_SETTINGS):  # pip reaches the index as it does on the machine
        if settings.exists():
            options.append(f"--volume={settings}:{settings}:ro")
    with locked("buildah"):
        _buildah(
            "build",
            f"--file={dockerfile or context / 'Dockerfile'}",
            f"--tag={tag}",
            "--pull-never",
            "--layers",
            "--isolation=chroot",
            "--network=host",
            *options,
            str(context),
        )
    return _archive(tag)


def _folder() -> Path:
    folder = cache() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _buildah(*arguments: str) -> str:
    """Runs buildah on our own store, with a registries file that never leads to a registry."""
    folder = _folder()
    registries = folder / "registries.conf"
    policy = folder / "policy.json"
    registries.write_text(
        'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n'
    )
    policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
    verb, *rest = arguments
    signed = verb in ("build", "commit", "push")
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    argv = [
        "buildah",
        f"--root={folder / 'storage'}",
        f"--runroot={folder / 'storage-run'}",
        "--storage-driver=overlay",
        f"--registries-conf={registries}",
        verb,
        *([f"--signature-policy={policy}"] if signed else []),
        *rest,
    ]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    packages = debs.ensure()
    return run(packages.as_if_installed(argv), env=environment, bound_s=BUILD_BOUND_S).stdout


def _ensure_base() -> None:
    folder = _folder() / f"base-{key(debs.SUITE, *_BASE, *_BASE_SETTINGS)}"

    def make(target: Path) -> None:
        rootfs = target / "rootfs.tar"
        argv: list[str | Path] = [
            "mmdebstrap",
            "--quiet",
            *_BASE,
            debs.SUITE,
            rootfs,
            debs.sources(),
        ]
        with tempfile.TemporaryDirectory(dir=_folder()) as temporary:
            environment = {**os.environ, "TMPDIR": temporary}
            run(debs.ensure().as_if_installed(argv), env=environment, bound_s=BUILD_BOUND_S)
        with locked("buildah"):
            container = _buildah("from", "scratch").strip()
            _buildah("add", "--quiet", container, str(rootfs), "/")
            _buildah("config", *_BASE_SETTINGS, container)
            _buildah("commit", "--quiet", "--rm", container, PYTHON)
        rootfs.unlink()

    once(folder, make)


def _archive(tag: str) -> Path:
    """Returns an image of buildah's store as an archive, named after the image's id."""
    with locked("buildah"):
        image = _buildah("inspect", "--type=image", "--format={{.FromImageID}}", tag).strip()
        folder = _folder() / "archives"
        name = tag.rsplit("/", 1)[-1].replace(":", "-")

        def make(target: Path) -> None:
            _buildah("push", "--quiet", tag, f"docker-archive:{target / name}.tar:{tag}")

        made = once(folder / f"{name}-{key(image, tag)}", make)
    os.utime(made)
    prune(folder, KEPT_ARCHIVES)
    return made / f"{name}.tar"


def prune(folder: Path, keep: int) -> None:
    """Removes all but the ``keep`` entries of a folder that were used last."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime)[:-keep]:
        shutil.rmtree(entry, ignore_errors=True)
