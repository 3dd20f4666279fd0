"""``python -m tests.deploy``: Parcae on the cluster that ``make cluster-up`` started."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tests.cluster import Cluster, ClusterError

from .install import NAMESPACE, give_images, install

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_NEXT = """
Parcae runs in the namespace {namespace}. What next:

  eval $({python} -m tests.cluster env)            # kubectl and helm for this cluster
  kubectl apply -f examples/gpt/job.yaml
  kubectl get parcaejob gpt --watch
  {python} -m tests.cluster kill spot-1            # a node goes without a sound; training goes on
  helm --namespace {namespace} test parcae
"""
_BY_HAND = """
The images are on the nodes. All at once: make deploy. Or as on any cluster, by hand:

  eval "$({python} -m tests.cluster env)"
  helm install parcae charts/parcae -f charts/parcae/presets/try.yaml
  helm test parcae
"""
_SLIM = """
Agents get torch from this machine's virtual environment (a policy of the cluster mounts it, so the
image took seconds). With torch in the image, in minutes: make deploy FULL=1
"""


@app.command()
def deploy(
    name: Annotated[str, typer.Option(help="The cluster.", envvar="PARCAE_CLUSTER")] = "parcae",
    full: Annotated[bool, typer.Option("--full", help="With torch in the agent's image.")] = False,
    images_only: Annotated[
        bool, typer.Option("--images-only", help="For those who install the chart by hand.")
    ] = False,
) -> None:
    """Build the images, load them into the cluster, and install the chart."""
    try:
        cluster = Cluster.attach(name)
    except ClusterError as error:
        raise ClusterError(f"{error}; start one with: make cluster-up") from error
    if images_only:
        give_images(cluster, full=full, say=typer.echo)
        typer.echo(_BY_HAND.format(python=sys.executable))
        return
    install(cluster, full=full, say=typer.echo)
    typer.echo(_NEXT.format(namespace=NAMESPACE, python=sys.executable))
    if not full:
        typer.echo(_SLIM.strip())


def main() -> None:
    """Runs the command; what goes wrong in the cluster is said without a traceback."""
    try:
        app(prog_name="python -m tests.deploy")
    except ClusterError as error:
        typer.echo(str(error), err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
