"""Parcae on the test cluster, and the scenario's code."""

from __future__ import annotations

from e2e_site import HERE, NAMESPACE, ROOT, Site
from tests.deploy.install import install as deploy


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
