"""Parcae on the test cluster, and the scenario's code."""

from __future__ import annotations

from pathlib import Path

from e2e_site import HERE, NAMESPACE, ROOT, Site
from tests.cluster import images, stores
from tests.deploy.install import VERSION
from tests.deploy.install import install as deploy

_TARGETS = {"etcd": "etcd", "operator": "operator", "planner": "planner", "agent": "agent-slim"}


def build_images() -> list[Path]:
    """Archives of ours, as the installation will want them."""
    return [
        images.build(ROOT, f"parcae-{name}:{VERSION}", target=target)
        for name, target in _TARGETS.items()
    ]


def prepare_images() -> None:
    """Build them, and import them once for all nodes."""
    stores.ensure([images.pause(), images.python(), *build_images()])


def install(site: Site) -> None:
    """Our images by our Dockerfile, our chart by Helm; the code in a ConfigMap."""
    deploy(site.cluster)
    files = (ROOT / "examples" / "gpt" / "gpt.py", HERE / "e2e_train.py")
    site.cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "gpt-code", "namespace": NAMESPACE},
            "data": {file.name: file.read_text() for file in files},
        }
    )
