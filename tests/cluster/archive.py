"""An image of one static program, as an archive that containerd can import; made without a builder.

The same program gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def one_program(program: Path, tag: str) -> bytes:
    """Returns a docker archive of an image that holds, and starts, nothing but ``program``."""
    path = f"/{program.name}"
    layer = _tar({program.name: (program.read_bytes(), 0o755)})
    config = json.dumps(
        {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {"Entrypoint": [path], "User": "65535:65535"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(layer)}"]},
            "history": [{"created_by": path}],
        }
    ).encode()
    name = f"{_sha256(config)}.json"
    manifest = json.dumps([{"Config": name, "RepoTags": [tag], "Layers": ["layer.tar"]}]).encode()
    members = {"manifest.json": manifest, name: config, "layer.tar": layer}
    return _tar({member: (data, 0o644) for member, data in members.items()})


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _tar(members: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (data, mode) in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            member.mode = mode
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
