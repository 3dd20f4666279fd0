"""Images into the nodes, the chart into the API server, the example's code into a ConfigMap."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.cluster import Cluster, images

from . import torch

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
VERSION = "0.1.0"
RELEASE = NAMESPACE = "parcae"
VALUES = HERE / "values.yaml"
_WAIT_S = 180

Say = Callable[[str], None]


def install(
    cluster: Cluster,
    *,
    full: bool = False,
    built: Mapping[str, Path] | None = None,
    say: Say = print,
) -> None:
    """Build and load the images, install or upgrade the chart, and wait until all is ready.

    Args:
        cluster: a running one.
        full: with torch in the agent's image; else pods get this machine's (see ``torch``).
        built: archives by program, where the cluster was started with them.
        say: told what is done, and how long it took.
    """
    if built is None:
        programs = give_images(cluster, full=full, say=say)
    else:
        programs = dict(built)
        _give_torch(cluster, wanted=not full)
    with _timed("helm upgrade --install", say):
        _namespace(cluster)
        _helm(cluster, programs)
    give_code(cluster)


def give_images(cluster: Cluster, *, full: bool = False, say: Say = print) -> dict[str, Path]:
    """Build the images and load them into all nodes; archives of the chart's by program."""
    programs = {name: _image(cluster, name, name, say) for name in ("etcd", "operator", "planner")}
    _image(cluster, "agent", "agent" if full else "agent-slim", say)
    _give_torch(cluster, wanted=not full)
    return programs


def give_code(cluster: Cluster, namespace: str = "default") -> None:
    """The example's module, as the ConfigMap that its job names."""
    code = (ROOT / "examples" / "gpt" / "gpt.py").read_text()
    metadata = {"name": "gpt-code", "namespace": namespace}
    cluster.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"gpt.py": code}}
    )


def _image(cluster: Cluster, name: str, target: str, say: Say) -> Path:
    """Build an image, unless its sources are as they were, and give it to all nodes."""
    with _timed(f"image parcae-{name} ({target})", say):
        archive = images.build(ROOT, f"parcae-{name}:{VERSION}", target=target)
        cluster.load(archive)
    return archive


def _namespace(cluster: Cluster) -> None:
    """A namespace that refuses every pod that Pod Security `restricted` would."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": NAMESPACE, "labels": labels}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _give_torch(cluster: Cluster, *, wanted: bool) -> None:
    policy = torch.policy()
    if wanted:
        cluster.apply(*policy)
    else:
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": policy})
        cluster.kubectl("delete", "--ignore-not-found", "-f", "-", input=listed)


def _helm(cluster: Cluster, programs: dict[str, Path]) -> None:
    """The tag of an image stays when it changes: what names its archive makes pods start anew."""
    changed = {
        program: {"podAnnotations": {"parcae.dev/image": programs[program].parent.name}}
        for program in ("operator", "planner", "etcd")
    }
    values = cluster.folder / "deploy-values.json"
    values.write_text(json.dumps(changed))
    chart = ROOT / "charts" / "parcae"
    options = [f"--namespace={NAMESPACE}", f"--values={VALUES}", f"--values={values}"]
    options += ["--wait", f"--timeout={_WAIT_S}s"]
    cluster.helm("upgrade", "--install", RELEASE, str(chart), *options, bound_s=_WAIT_S + 30)


@contextmanager
def _timed(what: str, say: Say) -> Iterator[None]:
    start_s = time.monotonic()
    yield
    say(f"  {what}: {time.monotonic() - start_s:.1f} s")
